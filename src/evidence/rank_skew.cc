#include "evidence/rank_skew.h"

#include <algorithm>
#include <array>

#include "base/median.h"
#include "evidence/rank_causes.h"

namespace culprit::evidence {
namespace {

using Records = std::span<const RankRecord* const>;

constexpr Nanos kTogether =
    1'000;  // who is later by less, and twice the clocks' scatter, is not last

// Waiting of one rank in one meeting, on its own clock.
store::Span waiting(const RankRecord& record, const Member& member, const Meeting& meeting,
                    Nanos until) {
  const RankCall& call = record.calls[member.call];
  const Nanos waited = std::clamp<Nanos>(until - member.begin, 0, meeting.left - member.begin);
  return {call.begin, std::min(call.end, call.begin + waited)};
}

class Relator {
 public:
  Relator(Records records, const Meetings& meetings, Skew& skew)
      : records_(records),
        meetings_(meetings),
        skew_(skew),
        waits_(records.size()),
        absent_(records.size()),
        waited_for_(records.size(), std::vector<Nanos>(records.size(), 0)) {}

  void relate() {
    for (const Meeting& meeting : meetings_.all) weigh(meeting);
    for (std::size_t r = 0; r < records_.size(); ++r) sum_up(r);
    find_late();
  }

 private:
  void weigh(const Meeting& meeting) {
    const Member& last = meetings_.members[meeting.last];
    for (const Member& member : meetings_.of(meeting)) {
      RankSkew& its = skew_.ranks[member.rank];
      ++its.meetings;
      const RankRecord& record = *records_[member.rank];
      waits_[member.rank].push_back(waiting(record, member, meeting, meeting.started));
      const store::Span present = waiting(record, member, meeting, last.begin);
      if (meeting.started > last.begin)
        absent_[member.rank].push_back({present.end, waits_[member.rank].back().end});
      if (member.rank == last.rank) continue;
      waited_for_[member.rank][last.rank] += present.length();
      skew_.ranks[last.rank].caused += present.length();
    }
    compare(meeting, last, skew_.ranks[last.rank]);
  }

  // The last one beside the median of the others.
  void compare(const Meeting& meeting, const Member& last, RankSkew& late) {
    std::vector<const Stretch*> others;
    std::vector<Nanos> arrivals;
    Nanos scatter = 0;
    for (const Member& member : meetings_.of(meeting)) {
      if (member.rank == last.rank) continue;
      others.push_back(&records_[member.rank]->calls[member.call].since);
      arrivals.push_back(member.begin);
      scatter = std::max(scatter, skew_.ranks[member.rank].clock.residual);
    }
    const Nanos later = last.begin - upper_median(std::move(arrivals));
    if (later <= kTogether + 2 * std::max(scatter, late.clock.residual)) return;
    ++late.last;
    late.late += later;
    const Stretch& own = records_[last.rank]->calls[last.call].since;
    for (std::size_t d = 0; d < kDoings; ++d) {
      std::vector<Nanos> times;
      times.reserve(others.size());
      for (const Stretch* other : others) times.push_back(other->ns[d]);
      late.excess.ns[d] += own.ns[d] - upper_median(std::move(times));
    }
  }

  void sum_up(std::size_t r) {
    RankSkew& its = skew_.ranks[r];
    const RankRecord& record = *records_[r];
    const auto per_step = [&](const std::vector<store::Span>& spans) {
      if (record.steps == 0) return Nanos{0};
      const store::SpanSet exposed = store::intersect(store::union_of(spans), record.exposed_comm);
      return (store::total(exposed) + record.steps / 2) / record.steps;
    };
    its.wait = per_step(waits_[r]);
    its.absent = per_step(absent_[r]);
    const auto most = std::max_element(waited_for_[r].begin(), waited_for_[r].end());
    if (*most > 0) its.waits_for = static_cast<std::size_t>(most - waited_for_[r].begin());
  }

  // Who is late twice as much as anybody who is not; up to a quarter of the ranks together.
  void find_late() {
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < records_.size(); ++r)
      if (skew_.ranks[r].meetings > 0) order.push_back(r);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return skew_.ranks[a].late > skew_.ranks[b].late;
    });
    if (order.size() < 2) return;
    const Nanos worst = skew_.ranks[order.front()].late;
    const std::size_t most = std::max<std::size_t>(1, order.size() / 4);
    std::size_t count = 0;
    while (count < order.size() && 2 * skew_.ranks[order[count]].late > worst) ++count;
    if (worst <= 0 || count > most) return;
    skew_.late.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  }

  Records records_;
  const Meetings& meetings_;
  Skew& skew_;
  std::vector<std::vector<store::Span>> waits_, absent_;
  std::vector<std::vector<Nanos>> waited_for_;  // by who waits, then by whom it waits for
};

}  // namespace

std::string_view late_cause_name(LateCause cause) {
  constexpr std::array<std::string_view, 11> kNames{
      "unknown",          "more-work",        "slow-kernels",
      "expert-imbalance", "idle-host-launch", "idle-host-sync",
      "idle-host-work",   "idle-stall",       "gc",
      "compile",          "allocator"};
  return kNames[static_cast<std::size_t>(cause)];
}

double Skew::step_ratio(std::span<const double> own_time) const {
  if (reproduced <= 0) return 1;
  return static_cast<double>(retimer->time(retimer->scaled(own_time))) /
         static_cast<double>(reproduced);
}

Skew relate_ranks(Records records) {
  Skew skew;
  const std::vector<Clock> clocks = align_clocks(records);
  auto meetings = std::make_shared<Meetings>(find_meetings(records, clocks));
  if (meetings->all.empty()) return skew;
  skew.ranks.resize(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) skew.ranks[r].clock = clocks[r];
  for (const Meeting& meeting : meetings->all) skew.whole = skew.whole && meeting.whole;
  Relator(records, *meetings, skew).relate();
  find_causes(records, skew);
  auto retimer = std::make_shared<RankRetimer>(*meetings, records.size());
  std::vector<bool> late(records.size(), false);
  for (const std::size_t r : skew.late) late[r] = true;
  skew.recorded = retimer->recorded();
  skew.reproduced = retimer->time(retimer->own());
  skew.as_the_others = retimer->time(retimer->as_the_others(late));
  if (static_cast<double>(skew.reproduced - skew.as_the_others) <
      kLeastLate * static_cast<double>(skew.reproduced)) {
    skew.late.clear();
    skew.as_the_others = skew.reproduced;
  }
  skew.retimer = std::move(retimer);
  skew.meetings = std::move(meetings);
  return skew;
}

}  // namespace culprit::evidence
