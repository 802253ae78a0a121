// RankRetimer: the steps of all ranks as what each does between two meetings. A meeting starts when
// its last member has come and ends after its transfer; what a rank does until its next one is carried
// along. So a rank that saves time only gains what the others do not make it wait for.
// Not modelled: a host that runs ahead. Where a rank's host needs longer for a step than the ranks
// together then take, the caller must say so (RankRecord::host_ns).
// Unchanged it gives the recorded time again, but for kernels that overlap a meeting.
#pragma once

#include <span>
#include <vector>

#include "evidence/rank_meetings.h"

namespace culprit::evidence {

class RankRetimer {
 public:
  // `meetings` and what it refers to must outlive this.
  RankRetimer(const Meetings& meetings, std::size_t ranks);

  // From the first arrival at a meeting to the last meeting's end, ns. `own`: for each member of each meeting, in
  // order of Meetings::members, the time that its rank needs since its meeting before,
  // or since that first arrival.
  Nanos time(std::span<const Nanos> own) const;
  const std::vector<Nanos>& own() const { return own_; }  // as recorded
  Nanos recorded() const { return recorded_; }
  // The same with `late` ranks needing what the median of the others needs for the same meeting,
  // where they need more.
  std::vector<Nanos> as_the_others(const std::vector<bool>& late) const;
  // The same with each rank's own time scaled.
  std::vector<Nanos> scaled(std::span<const double> factor) const;

 private:
  const Meetings& meetings_;
  std::size_t ranks_;
  std::vector<Nanos> own_;
  Nanos origin_ = 0, recorded_ = 0;
};

}  // namespace culprit::evidence
