// Ingest: a file or standard input to a Trace. The only layer that knows file formats. Reads Kineto
// Chrome JSON of every era, plain, gzip or zstd, and SQLite exports of Nsight Systems, told by
// content; see docs/trace-support.md. Several threads parse JSON; the result is the same for any
// number of them. Cost: about one pass over the text at memory speed, one query per table of a
// database; memory: the columns plus a few blocks.
#pragma once

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

struct Options {
  int threads = 0;                                // 0: as many as the machine has
  std::size_t block_size = std::size_t{1} << 20;  // text per block; tests make it small
  std::function<bool(const Progress&)> progress =
      {};  // called at most 10 times a second; false cancels (Error kInterrupted)
};

// `path` "-" is standard input. Errors: cannot read, refused by format, not a trace, empty.
// Everything less is a note.
Result<std::unique_ptr<store::Trace>> load(const std::string& path, const Options& options);

}  // namespace culprit::ingest
