#include "evidence/rank_skew.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

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

// Ranks of one stretch: their clocks, and where they met.
struct Related {
  Records records;
  std::vector<Clock> clocks;
  std::shared_ptr<const Meetings> meetings;
  explicit Related(Records of)
      : records(of),
        clocks(align_clocks(of)),
        meetings(std::make_shared<const Meetings>(find_meetings(of, clocks))) {}
};

// Adds up stretches.
class Relator {
 public:
  explicit Relator(std::size_t ranks) : totals_(ranks), waited_for_(ranks) {
    skew_.ranks.resize(ranks);
  }

  void add(const Related& related) {
    related_ = &related;
    waits_.assign(totals_.size(), {});
    absent_.assign(totals_.size(), {});
    for (const Meeting& meeting : related.meetings->all) weigh(meeting);
    met_ = met_ || !related.meetings->all.empty();
    for (std::size_t r = 0; r < totals_.size(); ++r) {
      const RankRecord& record = *related.records[r];
      Clock& clock = skew_.ranks[r].clock;
      if (!clock.aligned) clock = related.clocks[r];
      totals_[r].steps += record.steps;
      totals_[r].wait += exposed(record, waits_[r]);
      totals_[r].absent += exposed(record, absent_[r]);
    }
  }

  // Nobody is known to be late where no two ranks met.
  Skew finish() && {
    if (!met_) return {};
    for (std::size_t r = 0; r < totals_.size(); ++r) sum_up(r);
    find_late();
    return std::move(skew_);
  }

 private:
  struct Total {
    std::int64_t steps = 0;
    Nanos wait = 0, absent = 0;
  };

  void weigh(const Meeting& meeting) {
    const Meetings& meetings = *related_->meetings;
    const Member& last = meetings.members[meeting.last];
    skew_.whole = skew_.whole && meeting.whole;
    for (const Member& member : meetings.of(meeting)) {
      RankSkew& its = skew_.ranks[member.rank];
      ++its.meetings;
      const RankRecord& record = *related_->records[member.rank];
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
    for (const Member& member : related_->meetings->of(meeting)) {
      if (member.rank == last.rank) continue;
      others.push_back(&related_->records[member.rank]->calls[member.call].since);
      arrivals.push_back(member.begin);
      scatter = std::max(scatter, related_->clocks[member.rank].residual);
    }
    const Nanos later = last.begin - upper_median(std::move(arrivals));
    if (later <= kTogether + 2 * std::max(scatter, related_->clocks[last.rank].residual)) return;
    ++late.last;
    late.late += later;
    const Stretch& own = related_->records[last.rank]->calls[last.call].since;
    for (std::size_t d = 0; d < kDoings; ++d) {
      std::vector<Nanos> times;
      times.reserve(others.size());
      for (const Stretch* other : others) times.push_back(other->ns[d]);
      late.excess.ns[d] += own.ns[d] - upper_median(std::move(times));
    }
  }

  static Nanos exposed(const RankRecord& record, const std::vector<store::Span>& spans) {
    return store::total(store::intersect(store::union_of(spans), record.exposed_comm));
  }

  void sum_up(std::size_t r) {
    RankSkew& its = skew_.ranks[r];
    const Total& total = totals_[r];
    if (total.steps > 0) {
      its.wait = (total.wait + total.steps / 2) / total.steps;
      its.absent = (total.absent + total.steps / 2) / total.steps;
    }
    const auto most =
        std::max_element(waited_for_[r].begin(), waited_for_[r].end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != waited_for_[r].end() && most->second > 0) its.waits_for = most->first;
  }

  // Who is late twice as much as anybody who is not; up to a quarter of the ranks together.
  void find_late() {
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < totals_.size(); ++r)
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

  Skew skew_;
  bool met_ = false;
  const Related* related_ = nullptr;  // the stretch that is added
  std::vector<Total> totals_;
  std::vector<std::vector<store::Span>> waits_, absent_;
  // By who waits: by whom it waits for. Of thousands of ranks each waits for few.
  std::vector<std::map<std::size_t, Nanos>> waited_for_;
};

// Runs the meetings of a stretch again, as they were and with the late ranks as the others.
void retime(const Related& related, const std::vector<bool>& late, Skew& skew) {
  if (related.meetings->all.empty()) return;
  auto retimer = std::make_shared<RankRetimer>(*related.meetings, related.records.size());
  skew.recorded += retimer->recorded();
  skew.reproduced += retimer->time(retimer->own());
  skew.as_the_others += retimer->time(retimer->as_the_others(late));
  if (skew.retimer) return;
  skew.retimer = std::move(retimer);
  skew.meetings = related.meetings;
}

// Records that are all in memory: one stretch.
class Whole : public RankStretches {
 public:
  explicit Whole(Records records) : records_(records) {}
  Records ranks() override { return records_; }
  Records next() override { return std::exchange(given_, true) ? Records() : records_; }
  void rewind() override { given_ = false; }

 private:
  Records records_;
  bool given_ = false;
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
  const Nanos unchanged = retimer->time(retimer->own());
  if (unchanged <= 0) return 1;
  return static_cast<double>(retimer->time(retimer->scaled(own_time))) /
         static_cast<double>(unchanged);
}

Skew relate_ranks(Records records) {
  Whole whole(records);
  return relate_ranks(whole);
}

Skew relate_ranks(RankStretches& stretches) {
  const Records ranks = stretches.ranks();
  Relator relator(ranks.size());
  std::unique_ptr<const Related> only;  // of several none is kept
  std::size_t count = 0;
  for (Records records = stretches.next(); !records.empty(); records = stretches.next()) {
    only.reset();
    only = std::make_unique<const Related>(records);
    relator.add(*only);
    ++count;
  }
  Skew skew = std::move(relator).finish();
  if (!skew.known()) return skew;
  find_causes(ranks, skew);
  std::vector<bool> late(ranks.size(), false);
  for (const std::size_t r : skew.late) late[r] = true;
  if (count == 1) {
    retime(*only, late, skew);
  } else {
    only.reset();
    stretches.rewind();
    for (Records records = stretches.next(); !records.empty(); records = stretches.next())
      retime(Related(records), late, skew);
  }
  if (static_cast<double>(skew.reproduced - skew.as_the_others) <
      kLeastLate * static_cast<double>(skew.reproduced)) {
    skew.late.clear();
    skew.as_the_others = skew.reproduced;
  }
  return skew;
}

}  // namespace culprit::evidence
