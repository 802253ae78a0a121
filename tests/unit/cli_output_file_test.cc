#include "cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  std::string text_of(const std::string& file) const {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

constexpr std::string_view kAnswer = "{\n  \"schema_version\": 1\n}\n";

TEST_F(OutputFile, IsWrittenWholeAndLeavesNothingElse) {
  ASSERT_TRUE(write_answer_file(path("a.json"), kAnswer).ok());
  EXPECT_EQ(text_of(path("a.json")), kAnswer);
  EXPECT_EQ(files(), 1U);
  ASSERT_TRUE(write_answer_file(path("a.json"), std::string(kAnswer) + "\n").ok());
  EXPECT_EQ(text_of(path("a.json")), std::string(kAnswer) + "\n");
}

TEST_F(OutputFile, NeverOverwritesWhatIsNoAnswer) {
  std::ofstream(path("trace.json")) << "{\"traceEvents\": []}";
  const Status refused = write_answer_file(path("trace.json"), kAnswer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Error::Code::kUsage);
  EXPECT_EQ(text_of(path("trace.json")), "{\"traceEvents\": []}");
  EXPECT_FALSE(may_write_answer(folder_.string()).ok());
  std::ofstream(path("empty.json")).flush();
  EXPECT_TRUE(may_write_answer(path("empty.json")).ok());
}

TEST_F(OutputFile, AFolderThatIsNotThereIsNamed) {
  const Status failed = write_answer_file(path("no/such/a.json"), kAnswer);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().where, path("no/such/a.json"));
}

TEST_F(OutputFile, FollowsALinkAndWritesToDevices) {
  ASSERT_TRUE(write_answer_file(path("real.json"), kAnswer).ok());
  fs::create_symlink(path("real.json"), path("link.json"));
  ASSERT_TRUE(write_answer_file(path("link.json"), std::string(kAnswer) + " ").ok());
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(text_of(path("real.json")), std::string(kAnswer) + " ");
  EXPECT_TRUE(write_answer_file("/dev/null", kAnswer).ok());
}

}  // namespace
}  // namespace culprit::cli
