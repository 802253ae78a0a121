// Ingest: a file or standard input to a Trace. The only layer that knows file formats. Reads Kineto
// Chrome JSON of every era, plain, gzip or zstd, and SQLite exports of Nsight Systems, told by
// content; see docs/trace-support.md. Several threads parse JSON; the result is the same for any
// number of them. Cost: about one pass over the text at memory speed, one query per table of a
// database; memory: the columns plus a few blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/trace.h"

namespace culprit::ingest {

struct Progress {
  std::int64_t bytes_done = 0;
  std::int64_t bytes_total = 0;  // of the file as stored; 0: unknown (a pipe)
};

// How much text is held while it is not understood. Tests make all of them small.
struct Limits {
  std::size_t block = std::size_t{1} << 20;    // read and parsed at a time
  std::size_t head = std::size_t{64} << 20;    // in front of the event array; more is no trace
  std::size_t event = std::size_t{256} << 20;  // a longer event is damage
};

struct Options {
  int threads = 0;  // 0: as many as the machine has
  Limits limits = {};
  bool places = false;                                 // fills Trace::places; of Chrome JSON only
  std::function<bool(const Progress&)> progress = {};  // false cancels (Error kInterrupted)
  std::chrono::milliseconds progress_interval{100};    // between two calls, at least
};

// `path` "-" is standard input. Errors: cannot read, refused by format, not a trace, empty.
// Everything less is a note.
Result<std::unique_ptr<store::Trace>> load(const std::string& path, const Options& options);

}  // namespace culprit::ingest
