#include "evidence/rank_retime.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"

namespace culprit::evidence {
namespace {

constexpr Nanos kNotYet = std::numeric_limits<Nanos>::min();

}  // namespace

RankRetimer::RankRetimer(const Meetings& meetings, std::size_t ranks)
    : meetings_(meetings), ranks_(ranks) {
  std::vector<Nanos> left(ranks, kNotYet);
  own_.assign(meetings.members.size(), 0);
  for (const Meeting& meeting : meetings.all) {
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i) {
      const Member& member = meetings.members[i];
      if (left[member.rank] != kNotYet) own_[i] = member.begin - left[member.rank];
      left[member.rank] = member.end;
    }
  }
  if (!meetings.all.empty()) recorded_ = meetings.all.back().left - meetings.all.front().left;
}

Nanos RankRetimer::time(std::span<const Nanos> own) const {
  std::vector<Nanos> left(ranks_, kNotYet);
  Nanos end = 0;
  for (const Meeting& meeting : meetings_.all) {
    Nanos came = kNotYet;
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i) {
      const Member& member = meetings_.members[i];
      if (left[member.rank] != kNotYet) came = std::max(came, left[member.rank] + own[i]);
    }
    // Who meets for the first time comes as recorded; so does the transfer's start if nobody has met.
    const Nanos recorded_came = meetings_.members[meeting.last].begin;
    const Nanos outside = std::max<Nanos>(0, meeting.started - recorded_came);
    end = came == kNotYet ? meeting.left : came + outside + meeting.transfer();
    for (std::uint32_t i = meeting.first; i < meeting.first + meeting.members; ++i) {
      const Member& member = meetings_.members[i];
      left[member.rank] = end + (member.end - meeting.left);
    }
  }
  return meetings_.all.empty() ? 0 : end - meetings_.all.front().left;
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
