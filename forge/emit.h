// A run written as a Kineto trace: operators first, then Python frames, then device and API events,
// then names and the closing events, each in order of its start, as Kineto does. Invariant: one
// pass over the steps per family, re-running the clock, so memory is that of one step at any size.
// Cost: about 0.5 s per 500 MB on tmpfs. Errors: the sink's, as kCannotRead's writing twin in
// Error::what.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "forge/plan.h"
#include "forge/run.h"
#include "forge/text.h"

namespace culprit::forge {

struct WriteOptions {
  Layout layout = Layout::kPretty;
  Era era = Era::kRelative;
  bool header_last = false;
  bool shapes = true;
  bool stacks = true;
  bool call_from = true;
  Marks marks = Marks::kSglang;
  bool graph = false;
  bool partial_ends = false;  // the recording begins and ends inside a step
  int rank = 0;
  int world = 1;
  int steps = 30;
  std::uint64_t seed = 1;
  std::uint64_t filler =
      0;  // frames (with stacks) or operators (without) beyond the described ones, per step
};

struct Written {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t launches = 0;  // API calls that put work on the device
  int steps = 0;
  Nanos span = 0;  // from the first event to the last
};

Result<Written> write_trace(const Run& run, const WriteOptions& options, Sink& sink);

// The filler that brings a trace to at least `events` events or to `bytes` (either 0: not asked
// for). Error: the run without filler is larger than `bytes` already.
Result<std::uint64_t> filler_for(const Run& run, const WriteOptions& options, std::uint64_t events,
                                 std::uint64_t bytes);

}  // namespace culprit::forge
