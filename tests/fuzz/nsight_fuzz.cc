// From the bytes of a database to an answer; read from memory and from a file, which must give the same rows. SQLite follows links, so
// that the file must have a name of its own. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "answer.h"
#include "ingest/nsight.h"

using namespace culprit;

namespace {

class NamedFile {
 public:
  NamedFile(std::string path, std::string_view bytes) : path_(std::move(path)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~NamedFile() { unlink(path_.c_str()); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const std::string path = "/dev/shm/culprit fuzz " + std::to_string(getpid());
  const NamedFile file(path, bytes);
  const NamedFile writes(
      path + "-wal",
      size % 2 == 0 ? "" : "\x37\x7f\x06\x82 and more than the 32 bytes of a header");
  const auto database = ingest::Database::from_memory(bytes);
  ingest::Options options;
  options.progress = [&](const ingest::Progress& progress) {
    if (progress.bytes_done < 0 || progress.bytes_done > progress.bytes_total) std::abort();
    return size % 3 != 0;
  };
  store::Trace trace;
  trace.info.path = "memory";
  trace.info.file_bytes = static_cast<std::int64_t>(size);
  Status read =
      database.ok() ? ingest::read_nsight(*database, options, trace) : Status(database.error());
  if (!read.ok() && read.error().what.empty()) std::abort();
  if (ingest::is_sqlite_file(file.path())) {
    const auto loaded = ingest::load_nsight(file.path(), {});
    if (!loaded.ok() && loaded.error().what.empty()) std::abort();
    if (loaded.ok() && read.ok() && (*loaded)->device.size() != trace.device.size()) std::abort();
  }
  if (read.ok()) fuzz::answer(trace);
  return 0;
}
