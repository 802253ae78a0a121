// What text cases cannot show of the reader of Nsight Systems exports: cancelling, names, ids, order.
#include "ingest/nsight.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "temp_file.h"

namespace culprit::ingest {
namespace {

using test::TempFile;

class NewDatabase {
 public:
  explicit NewDatabase(const std::string& sql, std::string_view suffix = ".sqlite")
      : file_("", suffix) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file_.path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  const std::string& path() const { return file_.path(); }

 private:
  TempFile file_;
};

constexpr const char* kTables = R"(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  INSERT INTO StringIds VALUES (1, 'gemm_kernel'), (2, 'cudaLaunchKernel_v7000');
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
    globalPid INT, demangledName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
)";

TEST(Nsight, ColumnsStandInOrderOfTime) {
  const NewDatabase file(std::string(kTables) + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 350, 0, 7, 2, 16777216, 1, 4, 1, 1, 128, 1, 1),
                                                  (100, 150, 0, 7, 1, 16777216, 1, 5, 1, 1, 128, 1, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (220, 230, 16777219, 2, 2), (20, 30, 16777219, 1, 2);)");
  const auto trace = load(file.path(), {});
  ASSERT_TRUE(trace.ok()) << trace.error().what;
  const auto& device = (*trace)->device;
  EXPECT_EQ(device.begin, (std::vector<Nanos>{100, 300}));
  EXPECT_EQ(device.correlation, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(device.grid[0], (store::Dim3{5, 1, 1}));
  EXPECT_EQ((*trace)->calls.begin, (std::vector<Nanos>{20, 220}));
  EXPECT_EQ((*trace)->strings[(*trace)->calls.name[0]], "cudaLaunchKernel");
  const store::Thread& host = (*trace)->threads[(*trace)->calls.thread[0].index];
  EXPECT_EQ((*trace)->strings[host.pid], "1");
  EXPECT_EQ((*trace)->strings[host.tid], "3");
}

TEST(Nsight, CorrelationsOfTwoProcessesDiffer) {
  const NewDatabase file(std::string(kTables) + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 7, 1, 16777216, 1, 4, 1, 1, 128, 1, 1),
                                                  (300, 350, 0, 7, 1, 33554432, 1, 4, 1, 1, 128, 1, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 30, 16777219, 1, 2), (220, 230, 33554435, 1, 2);)");
  const auto trace = load(file.path(), {});
  ASSERT_TRUE(trace.ok());
  const auto& device = (*trace)->device.correlation;
  EXPECT_NE(device[0], device[1]);
  EXPECT_EQ(device, (*trace)->calls.correlation);
}

TEST(Nsight, NamesWithoutAKeyAreReadAsWell) {
  std::string tables = kTables;
  tables.replace(tables.find("id INTEGER PRIMARY KEY"), 22, "id INTEGER");
  const NewDatabase file(tables + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 7, 1, 16777216, 1, 4, 1, 1, 128, 1, 1);)");
  const auto trace = load(file.path(), {});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ((*trace)->strings[(*trace)->device.name[0]], "gemm_kernel");
}

TEST(Nsight, APathMayHoldWhatAUriMayNot) {
  const NewDatabase file(std::string(kTables) + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 7, 1, 16777216, 1, 4, 1, 1, 128, 1, 1);)",
                         " a?b#c%20&d=é.sqlite");
  EXPECT_TRUE(load(file.path(), {}).ok());
}

TEST(Nsight, ReadingCanBeCancelled) {
  const NewDatabase file(std::string(kTables) + R"(
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, i + 1, 16777219, i, 2 FROM n;)");
  int asked = 0;
  Options options;
  options.progress = [&](const Progress& progress) {
    EXPECT_LE(progress.bytes_done, progress.bytes_total);
    ++asked;
    return false;
  };
  const auto trace = load(file.path(), options);
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, Error::Code::kInterrupted);
  EXPECT_EQ(asked, 1);
}

TEST(Nsight, TheSameFromMemory) {
  const NewDatabase file(std::string(kTables) + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 7, 1, 16777216, 1, 4, 1, 1, 128, 1, 1);)");
  std::ostringstream bytes;
  bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
  const auto database = Database::from_memory(bytes.str());
  ASSERT_TRUE(database.ok());
  store::Trace trace;
  trace.info.file_bytes = static_cast<std::int64_t>(bytes.str().size());
  ASSERT_TRUE(read_nsight(*database, {}, trace).ok());
  EXPECT_EQ(trace.device.size(), 1U);
  EXPECT_FALSE(Database::from_memory("SQLite format 3").ok());
}

}  // namespace
}  // namespace culprit::ingest
