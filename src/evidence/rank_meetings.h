// Meetings: one collective as all its ranks took part in it, on one clock. The last to arrive starts
// the transfer: what the others spend in their kernels before that is waiting, what all spend after it
// is transfer. Where ranks of the group are not in the input, one of them may have come last: transfer
// beyond what this kind of call usually takes counts as waiting for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evidence/rank_clocks.h"
#include "evidence/rank_record.h"

namespace culprit::evidence {

struct Member {
  std::uint32_t rank = 0, call = 0;  // indices into the records, and into RankRecord::calls
  Nanos begin = 0, end = 0;          // on the reference clock
};

struct Meeting {
  std::uint32_t first = 0, members = 0;  // slice of Meetings::members
  std::uint32_t last = 0;                // index of the member that came last
  Nanos started = 0;  // when the last member came, or one that is not in the input
  Nanos left = 0;     // when the first member left
  bool whole = true;  // every rank of the group is in the input
  Nanos transfer() const { return left - started; }
};

struct Meetings {
  std::vector<Meeting> all;  // in order of `left`
  std::vector<Member> members;
  std::span<const Member> of(const Meeting& meeting) const {
    return {members.data() + meeting.first, meeting.members};
  }
};

// Calls of one group whose ends lie together, of two ranks or more. Ranks whose clock is not aligned
// take no part. O(n log n) in the calls of all ranks.
Meetings find_meetings(std::span<const RankRecord* const> records, std::span<const Clock> clocks);

}  // namespace culprit::evidence
