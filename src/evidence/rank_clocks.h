// Clocks of ranks, aligned by the collectives in which they met: a collective ends on all its ranks
// within microseconds, whoever came late. Between two ranks the difference of those ends over time is
// a line: its height is the offset of the clocks, its slope their drift.
// The line goes through the medians of up to 32 stretches of time, then by least squares through what
// lies near it; ends that lie far off (a rank that left late) do not bend it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evidence/rank_record.h"

namespace culprit::evidence {

// One end as two clocks show it, ns.
struct SharedEnd {
  Nanos reference = 0, own = 0;
};

// own = reference + offset + drift x (reference - at).
struct Clock {
  bool aligned = false;
  Nanos at = 0;           // on the reference clock: of the first shared end
  Nanos offset = 0;       // this rank's clock less the reference's, then
  double drift = 0;       // by which it is fast: 1e-6 is one part in a million
  Nanos residual = 0;     // median distance of the shared ends from the line
  std::int64_t ends = 0;  // shared ends used
  Nanos to_reference(Nanos own) const;
};

// Fewer than 16 ends give no drift, nor do those whose slope is less than 4 standard errors; none give
// no clock. O(n log n).
Clock fit_clock(std::vector<SharedEnd> ends);

// One clock for each record, by that of the first record that has collectives; a rank that shares
// none with it is aligned by another one that is. Calls meet by sequence number where recorded, else
// by their order within the group: the shift is the one under which the differences of their ends
// scatter least. Not aligned: ranks without a collective in common with the others, and those whose
// ends scatter by more than kMostScatter.
inline constexpr Nanos kMostScatter = 500'000;
std::vector<Clock> align_clocks(std::span<const RankRecord* const> records);

}  // namespace culprit::evidence
