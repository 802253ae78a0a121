// From the bytes of a database to an answer; read from memory and from a file, which must give the same rows. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "answer.h"
#include "ingest/nsight.h"
#include "memory_file.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const fuzz::MemoryFile file(bytes);
  const auto database = ingest::Database::from_memory(bytes);
  store::Trace trace;
  trace.info.path = "memory";
  trace.info.file_bytes = static_cast<std::int64_t>(size);
  Status read =
      database.ok() ? ingest::read_nsight(*database, {}, trace) : Status(database.error());
  if (!read.ok() && read.error().what.empty()) std::abort();
  if (ingest::is_sqlite_file(file.path())) {
    const auto loaded = ingest::load_nsight(file.path(), {});
    if (!loaded.ok() && loaded.error().what.empty()) std::abort();
    if (loaded.ok() && read.ok() && (*loaded)->device.size() != trace.device.size()) std::abort();
  }
  if (read.ok()) fuzz::answer(trace);
  return 0;
}
