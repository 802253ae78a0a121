// Script: the launches of one piece of work in the order in which the host made them, as a trace
// recorded them: a graph while it was captured, or one eager step. A replay of the same graph can be
// held against it, launch by launch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/trace.h"

namespace culprit::run {

struct Launched {
  store::CallRow call;
  store::StringId kernel;  // of the trace's strings; the empty string: not told
  store::DeviceKind kind = store::DeviceKind::kKernel;
  store::Dim3 grid{};  // as recorded with the kernel; {0,0,0}: not recorded
};

struct Script {
  std::string name;                          // "capture_32_DECODE", "step 3"; may be empty
  bool captured = true;                      // else an eager step, whose kernels ran
  std::optional<std::int64_t> size, tokens;  // batch and tokens that it was made for
  bool cut_front = false, cut_back = false;  // the recording misses its begin, or its end
  std::vector<Launched> launches;
};

}  // namespace culprit::run
