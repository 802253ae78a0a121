#include "evidence/rank_meetings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/median.h"

namespace culprit::evidence {
namespace {

constexpr Nanos kLeastTogether = 20'000, kMostTogether = 500'000;  // spread of one meeting's ends

struct Arrival {
  Member member;
  std::string_view what;
  std::int64_t group_size = 0;
};
using ByGroup = std::map<std::string_view, std::vector<Arrival>>;

ByGroup arrivals(std::span<const RankRecord* const> records, std::span<const Clock> clocks) {
  ByGroup groups;
  for (std::uint32_t r = 0; r < records.size(); ++r) {
    if (!clocks[r].aligned) continue;
    const RankRecord& record = *records[r];
    for (std::uint32_t c = 0; c < record.calls.size(); ++c) {
      const RankCall& call = record.calls[c];
      const CallKind& kind = record.kinds[call.kind];
      const Member member{r, c, clocks[r].to_reference(call.begin),
                          clocks[r].to_reference(call.end)};
      groups[kind.group].push_back({member, kind.what, kind.group_size});
    }
  }
  for (auto& [group, list] : groups) {
    std::sort(list.begin(), list.end(), [](const Arrival& a, const Arrival& b) {
      return std::tie(a.member.end, a.member.rank) < std::tie(b.member.end, b.member.rank);
    });
  }
  return groups;
}

// How far ends of one meeting may lie apart: less than half of what lies between two ends of a rank.
Nanos together(const std::vector<Arrival>& list) {
  std::map<std::uint32_t, Nanos> last;
  std::vector<Nanos> between;
  for (const Arrival& arrival : list) {
    const auto [at, first] = last.try_emplace(arrival.member.rank, arrival.member.end);
    if (!first) between.push_back(arrival.member.end - at->second);
    at->second = arrival.member.end;
  }
  return std::clamp(upper_median(std::move(between)) * 2 / 5, kLeastTogether, kMostTogether);
}

class Finder {
 public:
  Finder(Meetings& meetings, std::size_t ranks) : meetings_(meetings), ranks_(ranks) {}

  void find(const std::vector<Arrival>& list) {
    const Nanos apart = together(list);
    std::size_t first = 0;
    for (std::size_t i = 1; i <= list.size(); ++i) {
      if (i < list.size() && belongs(list, first, i, apart)) continue;
      add(list, first, i);
      first = i;
    }
  }

  // Of kinds that met often: beyond what their calls usually take, somebody outside was waited for.
  void find_absent() {
    constexpr double kUsual = 0.25;  // quantile of the transfers
    constexpr Nanos kBeyond = 2;     // times as long
    for (auto& [what, list] : incomplete_) {
      std::vector<Nanos> times;
      for (const std::size_t m : list) times.push_back(meetings_.all[m].transfer());
      const auto quarter =
          times.begin() + static_cast<std::ptrdiff_t>(kUsual * static_cast<double>(times.size()));
      std::nth_element(times.begin(), quarter, times.end());
      for (const std::size_t m : list) {
        Meeting& meeting = meetings_.all[m];
        if (meeting.transfer() > kBeyond * *quarter) meeting.started = meeting.left - *quarter;
      }
    }
  }

 private:
  static bool belongs(const std::vector<Arrival>& list, std::size_t first, std::size_t i,
                      Nanos apart) {
    if (list[i].member.end - list[first].member.end > apart || list[i].what != list[first].what)
      return false;
    for (std::size_t j = first; j < i; ++j)
      if (list[j].member.rank == list[i].member.rank) return false;
    return true;
  }

  void add(const std::vector<Arrival>& list, std::size_t first, std::size_t end) {
    if (end - first < 2) return;
    Meeting meeting;
    meeting.first = static_cast<std::uint32_t>(meetings_.members.size());
    meeting.members = static_cast<std::uint32_t>(end - first);
    meeting.left = list[first].member.end;
    for (std::size_t i = first; i < end; ++i) {
      const Member& member = list[i].member;
      if (i == first || member.begin > meeting.started) {
        meeting.started = member.begin;
        meeting.last = static_cast<std::uint32_t>(meetings_.members.size());
      }
      meetings_.members.push_back(member);
    }
    meeting.started = std::min(meeting.started, meeting.left);
    const std::int64_t size =
        list[first].group_size > 0 ? list[first].group_size : static_cast<std::int64_t>(ranks_);
    meeting.whole = static_cast<std::int64_t>(meeting.members) >= size;
    if (!meeting.whole) incomplete_[list[first].what].push_back(meetings_.all.size());
    meetings_.all.push_back(meeting);
  }

  Meetings& meetings_;
  std::size_t ranks_;
  std::map<std::string_view, std::vector<std::size_t>> incomplete_;
};

}  // namespace

Meetings find_meetings(std::span<const RankRecord* const> records, std::span<const Clock> clocks) {
  std::size_t ranks = records.size();
  for (const RankRecord* record : records)
    ranks = std::max(ranks, static_cast<std::size_t>(record->world.value_or(0)));
  Meetings meetings;
  Finder finder(meetings, ranks);
  for (const auto& [group, list] : arrivals(records, clocks)) finder.find(list);
  finder.find_absent();
  std::stable_sort(meetings.all.begin(), meetings.all.end(),
                   [](const Meeting& a, const Meeting& b) { return a.left < b.left; });
  return meetings;
}

}  // namespace culprit::evidence
