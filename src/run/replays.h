// Replays: the kernels of one graph launch share its correlation id and stand for one replay.
#pragma once

#include <cstdint>
#include <vector>

#include "run/run.h"

namespace culprit::run {

struct Replay {
  std::uint32_t first = 0;  // activity
  Nanos time = 0;           // sum of its kernels
  std::int64_t kernels = 0;
  std::int64_t repeats = 0;     // of its most frequent kernel group
  std::uint64_t signature = 0;  // equal for replays with the same kernels, in whatever order the
                                // device ran its branches
};

struct Replays {
  std::vector<Replay> all;        // in order of begin
  std::vector<std::uint32_t> of;  // by activity: its replay, or kNone
  static constexpr std::uint32_t kNone = 0xffffffffU;
};

Replays find_replays(const Run& run);

}  // namespace culprit::run
