// What of the logs belongs into the trace. Invariant: it holds whole steps only, from the first one
// on; of each launch that it holds it has all works. Steps that lack something (the arena was full,
// work never ran) and all that follows them are left out and counted.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "profile/clock.h"
#include "profile/log.h"

namespace culprit::profile::detail {

struct StepRow {
  Ticks begin = 0, end = 0;
  const Record* record = nullptr;
};

struct LaunchRow {
  static constexpr std::uint32_t kNoStep = std::numeric_limits<std::uint32_t>::max();
  Ticks begin = 0;               // 0: no launch has this id
  std::uint64_t op = 0;          // around it
  std::uint32_t step = kNoStep;  // around it
  std::uint32_t missing = 0;     // works that have not ended
  bool kept = false;
};

struct Window {
  std::vector<StepRow> steps;    // in order of begin
  Ticks end = 0;                 // what begins before it on the host is kept
  std::int64_t lost = 0;         // records of the window that are left out, and refused ones
  std::int64_t refused = 0;      // of them: the arena was full
  std::int64_t missing = 0;      // works that were launched and have not ended
  std::int64_t open = 0;         // records that have no end
  std::int64_t steps_begun = 0;  // recorded, whole or not
  std::vector<std::vector<LaunchRow>> launches;  // by index of the log, and by id / Log::kMost

  LaunchRow* launch(std::uint64_t id);  // null: none has this id
  const LaunchRow* launch(std::uint64_t id) const;
  bool keeps(const Record& record) const;
  // Of a record that is kept; one that is open ends with the window.
  Ticks end_of(const Record& record) const;
};

using Logs = std::vector<std::unique_ptr<Log>>;

// `closed_at`: when the window ended.
Window look_at(const Logs& logs, Ticks closed_at);

}  // namespace culprit::profile::detail
