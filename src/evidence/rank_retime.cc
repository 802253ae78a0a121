#include "evidence/rank_retime.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"

namespace culprit::evidence {
RankRetimer::RankRetimer(const Meetings& meetings, std::size_t ranks)
    : meetings_(meetings), ranks_(ranks) {
  if (meetings.all.empty()) return;
  origin_ = std::numeric_limits<Nanos>::max();
  for (const Member& member : meetings.of(meetings.all.front()))
    origin_ = std::min(origin_, member.begin);
  std::vector<Nanos> left(ranks, origin_);
  own_.assign(meetings.members.size(), 0);
  for (const Meeting& meeting : meetings.all) {
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i) {
      const Member& member = meetings.members[i];
      own_[i] = member.begin - left[member.rank];
      left[member.rank] = member.end;
    }
  }
  recorded_ = meetings.all.back().left - origin_;
}

Nanos RankRetimer::time(std::span<const Nanos> own) const {
  std::vector<Nanos> left(ranks_, origin_);
  Nanos end = origin_;
  for (const Meeting& meeting : meetings_.all) {
    Nanos came = std::numeric_limits<Nanos>::min();
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i)
      came = std::max(came, left[meetings_.members[i].rank] + own[i]);
    // Somebody who is not in the input came as long after the last member as recorded.
    const Nanos outside =
        std::max<Nanos>(0, meeting.started - meetings_.members[meeting.last].begin);
    end = came + outside + meeting.transfer();
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i) {
      const Member& member = meetings_.members[i];
      left[member.rank] = end + (member.end - meeting.left);
    }
  }
  return end - origin_;
}

std::vector<Nanos> RankRetimer::as_the_others(const std::vector<bool>& late) const {
  std::vector<Nanos> own = own_;
  for (const Meeting& meeting : meetings_.all) {
    std::vector<Nanos> others;
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i)
      if (!late[meetings_.members[i].rank]) others.push_back(own_[i]);
    if (others.empty()) continue;
    const Nanos usual = upper_median(std::move(others));
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i)
      if (late[meetings_.members[i].rank]) own[i] = std::min(own[i], usual);
  }
  return own;
}

std::vector<Nanos> RankRetimer::scaled(std::span<const double> factor) const {
  std::vector<Nanos> own = own_;
  for (std::size_t i = 0; i < own.size(); ++i)
    own[i] = std::llround(static_cast<double>(own[i]) * factor[meetings_.members[i].rank]);
  return own;
}

}  // namespace culprit::evidence
