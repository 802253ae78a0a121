// Skew: who is waited for, how long, and why. Waiting is told from transfer by the meetings of all
// ranks; a rank's lateness is what it needed more than the median of the others between two meetings,
// and its cause is what it did in that time that they did not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/rank_meetings.h"
#include "evidence/rank_retime.h"

namespace culprit::evidence {

// Why a rank comes late; names as in the JSON contract.
enum class LateCause : std::uint8_t {
  kUnknown,
  kMoreWork,         // more kernels, or larger grids, than the other ranks
  kSlowKernels,      // the same work takes longer: a low clock, throttling
  kExpertImbalance,  // the same expert GEMMs take longer: more rows in the same grid
  kHostLaunch,       // its host launches late
  kHostSync,         // its host waits for the device
  kHostWork,         // its host computes something of its own
  kStall,            // nothing happens on its host
  kGc,               // ... and a frame says that garbage is collected
  kCompile,
  kAllocator,
};
std::string_view late_cause_name(LateCause);  // "slow-kernels", "idle-host-launch", "gc"

struct RankSkew {
  Clock clock;
  Nanos wait = 0;    // per used step: exposed waiting for other ranks of the input, or absent ones
  Nanos absent = 0;  // ... of it for ranks that are not in the input
  std::optional<std::size_t> waits_for;  // for whom it waited longest; index of a rank
  // How many it was in, and came last to, by more than the clocks' scatter behind the median.
  std::int64_t meetings = 0, last = 0;
  Nanos late = 0;  // later than the median of the others where it came last, sum over all meetings
  Nanos caused = 0;  // waiting of all others for it, likewise
  LateCause cause = LateCause::kUnknown;
  std::string sign;  // the frame that tells the cause; empty: none does
  // What it needed more than the median of the others where it came last, sum over all meetings.
  Stretch excess;
  // Kernels of the same name and grid: its time over the median of the others', 1: as they.
  double kernel_ratio = 1;
  // Work of the same kernels: its blocks over the median of the others'.
  double work_ratio = 1;
};

// Arrivals scatter: without one that costs more than this share of the step no rank is late.
inline constexpr double kLeastLate = 0.02;

struct Skew {
  std::vector<RankSkew> ranks;  // as the records; empty where no two ranks met
  // Who is waited for, worst first: late twice as much as any other rank, and at a cost of kLeastLate
  // of the time at least. Empty: nobody stands out.
  std::vector<std::size_t> late;
  std::shared_ptr<const Meetings> meetings;  // of the first stretch
  std::shared_ptr<const RankRetimer> retimer;
  Nanos recorded = 0;       // from the first meeting to the last, of all stretches
  Nanos reproduced = 0;     // the same, retimed without a change
  Nanos as_the_others = 0;  // ... with `late` ranks as the others
  bool whole = true;        // every rank of every group is in the input
  bool known() const { return !ranks.empty(); }
  // From the first stretch: the run's step over what it is now, if each rank's own time between meetings were scaled.
  double step_ratio(std::span<const double> own_time) const;
};

Skew relate_ranks(std::span<const RankRecord* const> records);

// The same of ranks with more collectives than can be held at once: one stretch of their steps after the
// other. Clocks are aligned in each by itself; what lies between two stretches is no rank's own time.
class RankStretches {
 public:
  RankStretches() = default;
  virtual ~RankStretches() = default;
  RankStretches(const RankStretches&) = delete;
  RankStretches& operator=(const RankStretches&) = delete;
  // All ranks, always in one order. Their records but for the collectives.
  virtual std::span<const RankRecord* const> ranks() = 0;
  // The next stretch, good until the next call; empty behind the last.
  virtual std::span<const RankRecord* const> next() = 0;
  virtual void rewind() = 0;  // to the first
};
Skew relate_ranks(RankStretches& stretches);

}  // namespace culprit::evidence
