// A run written as a Kineto trace, in Kineto's order: operators, Python frames, device and API
// events, names, the closing events.
// Invariant: one pass over the steps per family, re-running the clock, so memory is that of one
// step at any size.
// Cost: about 0.5 s per 500 MB besides the sink.
#pragma once

#include <cstdint>
#include <string>

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
  bool partial_ends = false;     // the recording begins and ends inside a step
  int rank = 0;                  // of Run::world
  Nanos clock_offset = 0;        // of the rank's clock at the start of the recording
  std::int64_t clock_drift = 0;  // parts per 10^9 by which it is fast
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
  Nanos span = 0;      // from the first event to the last
  std::string clocks;  // a line for each rank whose clock is off
};

// Errors: kUsage for a rank or number of steps that does not exist, kCannotRead for a sink that fails.
Result<Written> write_trace(const Run& run, const WriteOptions& options, Sink& sink);

// How a trace gets to a size: more filler, or fewer steps.
struct Wanted {
  std::uint64_t events = 0;  // at least; 0: not asked for
  std::uint64_t bytes = 0;   // within 10 %; 0: not asked for
  bool keep_steps = true;    // false: a run that is too large is cut to fewer steps
};

// Sets options.steps and options.filler. Error: kUsage if the run is too large whatever is done.
Status fit(const Run& run, const Wanted& wanted, WriteOptions& options);

}  // namespace culprit::forge
