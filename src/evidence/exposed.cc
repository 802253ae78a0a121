// Exposed time by one sweep over begins and ends: how many groups (and kinds) run now, and, when it
// is one, which.
#include <algorithm>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

// A family of sets of which any may be active several times over; knows which one is alone.
class Alone {
 public:
  explicit Alone(std::size_t sets) : active_(sets, 0), time_(sets, 0) {}
  void enter(std::size_t set) {
    if (active_[set]++ == 0) ++distinct_, sum_ += set;
  }
  void leave(std::size_t set) {
    if (--active_[set] == 0) --distinct_, sum_ -= set;
  }
  void pass(Nanos ns) {
    if (distinct_ == 1) time_[sum_] += ns;  // the sum of one index is that index
  }
  const std::vector<Nanos>& time() const { return time_; }

 private:
  std::vector<std::int64_t> active_;
  std::vector<Nanos> time_;
  std::size_t distinct_ = 0, sum_ = 0;
};

// How much of [begin, end) lies in the used steps; calls must come in time order.
class UsedPart {
 public:
  explicit UsedPart(const store::SpanSet& used) : used_(used) {}
  Nanos of(Nanos begin, Nanos end) {
    while (next_ < used_.size() && used_[next_].end <= begin) ++next_;
    Nanos part = 0;
    for (std::size_t i = next_; i < used_.size() && used_[i].begin < end; ++i) {
      part += std::min(end, used_[i].end) - std::max(begin, used_[i].begin);
    }
    return part;
  }

 private:
  const store::SpanSet& used_;
  std::size_t next_ = 0;
};

}  // namespace

Exposed measure_exposed(const Basis& basis) {
  const std::vector<run::Activity>& activities = basis.run.activities;
  std::vector<std::uint32_t> by_end;
  by_end.reserve(activities.size());
  for (std::size_t i = 0; i < activities.size(); ++i) {
    if (activities[i].end > activities[i].begin) by_end.push_back(static_cast<std::uint32_t>(i));
  }
  const std::vector<std::uint32_t> by_begin = by_end;  // activities are in order of begin
  std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return activities[a].end < activities[b].end;
  });

  Alone groups(basis.run.groups.size());
  Alone kinds(known::kOwnerCount);
  UsedPart used(basis.used);
  Nanos now = activities.empty() ? 0 : activities.front().begin;
  const auto pass_to = [&](Nanos then) {
    const Nanos ns = used.of(now, then);
    groups.pass(ns);
    kinds.pass(ns);
    now = then;
  };
  std::size_t begins = 0;
  for (const std::uint32_t ending : by_end) {
    const Nanos end = activities[ending].end;
    for (; begins < by_begin.size() && activities[by_begin[begins]].begin < end; ++begins) {
      const run::Activity& starting = activities[by_begin[begins]];
      pass_to(starting.begin);
      groups.enter(starting.group.index);
      kinds.enter(static_cast<std::size_t>(starting.kind));
    }
    pass_to(end);
    groups.leave(activities[ending].group.index);
    kinds.leave(static_cast<std::size_t>(activities[ending].kind));
  }

  Exposed exposed;
  exposed.by_group = groups.time();
  std::copy(kinds.time().begin(), kinds.time().end(), exposed.by_kind.begin());
  return exposed;
}

Nanos exposed_ns_per_step(const run::Run& run, std::span<const run::GroupId> groups) {
  std::vector<bool> chosen(run.groups.size(), false);
  for (const run::GroupId group : groups) chosen[group.index] = true;
  std::vector<store::Span> inside, outside;
  for (const run::Activity& activity : run.activities) {
    (chosen[activity.group.index] ? inside : outside).push_back({activity.begin, activity.end});
  }
  const store::SpanSet alone =
      store::subtract(store::union_of(std::move(inside)), store::union_of(std::move(outside)));
  const Nanos total = store::total(store::intersect(alone, used_time(run)));
  const auto steps = std::count_if(run.steps.begin(), run.steps.end(),
                                   [](const run::Step& step) { return step.used; });
  return steps > 0 ? (total + steps / 2) / steps : 0;
}

}  // namespace culprit::evidence
