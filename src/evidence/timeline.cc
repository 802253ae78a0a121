#include "evidence/timeline.h"

#include <algorithm>
#include <limits>

namespace culprit::evidence {
namespace {

// Activities arrive in order of begin time, so the one that began first and still runs is the front
// of a queue once the ended ones are dropped from it: each is pushed and popped once.
class Queue {
 public:
  void push(run::ActivityId id) { ids_.push_back(id); }
  run::ActivityId front(const std::vector<run::Activity>& activities, Nanos now) {
    while (head_ < ids_.size() && activities[ids_[head_].index].end <= now) ++head_;
    return head_ < ids_.size() ? ids_[head_] : run::ActivityId{};
  }

 private:
  std::vector<run::ActivityId> ids_;
  std::size_t head_ = 0;
};

bool hides(known::Owner kind) {
  return !known::is_comm(kind) && kind != known::Owner::kMemcpy && kind != known::Owner::kMemset;
}

void append(std::vector<Segment>& segments, Segment segment) {
  const bool leading_idle = segments.empty() && segment.idle();
  if (segment.end <= segment.begin || leading_idle) return;
  if (!segments.empty() && segments.back().owner == segment.owner) {
    segments.back().end = segment.end;
  } else {
    segments.push_back(segment);
  }
}

}  // namespace

std::vector<Segment> timeline(const std::vector<run::Activity>& activities) {
  constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
  std::vector<Segment> segments;
  if (activities.empty()) return segments;
  segments.reserve(2 * activities.size());
  Queue compute, transfers;
  Nanos now = activities.front().begin;
  std::size_t next = 0;
  while (true) {
    for (; next < activities.size() && activities[next].begin <= now; ++next) {
      (hides(activities[next].kind) ? compute : transfers).push(run::ActivityId(next));
    }
    run::ActivityId owner = compute.front(activities, now);
    if (!owner.valid()) owner = transfers.front(activities, now);
    const Nanos arrival = next < activities.size() ? activities[next].begin : kNever;
    const Nanos departure = owner.valid() ? activities[owner.index].end : kNever;
    const Nanos then = std::min(arrival, departure);
    if (then == kNever) break;
    append(segments, {now, then, owner});
    now = then;
  }
  // Activities of no length at either end leave idle time there, which is not between two others.
  if (!segments.empty() && segments.back().idle()) segments.pop_back();
  return segments;
}

std::size_t segment_at(const std::vector<Segment>& segments, Nanos t) {
  const auto found = std::upper_bound(segments.begin(), segments.end(), t,
                                      [](Nanos at, const Segment& s) { return at < s.end; });
  return static_cast<std::size_t>(found - segments.begin());
}

store::SpanSet used_time(const run::Run& run) {
  std::vector<store::Span> spans;
  for (const run::Step& step : run.steps) {
    if (step.used) spans.push_back({step.begin, step.end});
  }
  return store::union_of(std::move(spans));
}

}  // namespace culprit::evidence
