// Statistics over the used steps: wall time, device span and busy share, the host's own time.
#include <algorithm>
#include <limits>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

// First to last device activity that begins inside the step.
store::Span device_span(const run::Run& run, const run::Step& step) {
  store::Span span{step.begin, step.begin};
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
    if (i == step.first) span.begin = activity.begin;
    span.end = std::max(span.end, activity.end);
  }
  span.end = std::min(span.end, step.end);
  return span;
}

Nanos busy(const std::vector<Segment>& segments, store::Span span) {
  Nanos total = 0;
  for (std::size_t i = segment_at(segments, span.begin);
       i < segments.size() && segments[i].begin < span.end; ++i) {
    if (segments[i].idle()) continue;
    total += std::min(segments[i].end, span.end) - std::max(segments[i].begin, span.begin);
  }
  return total;
}

Nanos add(Nanos a, Nanos b) {  // stops at the largest, on hostile input
  Nanos sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<Nanos>::max() / 2 : sum;
}

Nanos sum_of_activities(const run::Run& run, const run::Step& step) {
  Nanos sum = 0;
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
    sum = add(sum, activity.end - activity.begin);
  }
  return sum;
}

// The thread behind most launches of a step, with its first and last launch.
struct Launches {
  store::ThreadId thread;
  Nanos first = 0, last_end = 0;
};

Launches launches_of(const Basis& basis, const run::Step& step) {
  const run::Run& run = basis.run;
  const store::CallTable& calls = run.trace->calls;
  const auto for_each = [&](auto&& visit) {
    for (std::int64_t i = step.first; i < step.last; ++i) {
      const store::CallRow call = run.activities[static_cast<std::size_t>(i)].call;
      if (call.valid()) visit(call);
    }
  };
  Launches result;
  std::int64_t lead = 0;  // majority vote: a thread with more than half of the calls wins
  for_each([&](store::CallRow call) {
    const store::ThreadId thread = calls.thread[call.index];
    if (lead == 0) result.thread = thread;
    lead += thread == result.thread ? 1 : -1;
  });
  bool any = false;
  for_each([&](store::CallRow call) {
    if (calls.thread[call.index] != result.thread) return;
    const Nanos begin = calls.begin[call.index];
    result.first = any ? std::min(result.first, begin) : begin;
    result.last_end = any ? std::max(result.last_end, basis.host.end(call)) : basis.host.end(call);
    any = true;
  });
  return result;
}

// From its first launch to the next step's first launch where that follows at once; else to its own
// last launch. Means over the used steps.
void measure_host(const Basis& basis, StepStats& stats) {
  const std::vector<run::Step>& steps = basis.run.steps;
  Nanos own_time = 0, waited = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].used) continue;
    const Launches own = launches_of(basis, steps[i]);
    if (!own.thread.valid()) continue;
    Nanos until = own.last_end;
    if (i + 1 < steps.size() && steps[i + 1].begin == steps[i].end) {
      const Launches next = launches_of(basis, steps[i + 1]);
      if (next.thread == own.thread && next.first > own.first) until = next.first;
    }
    const Nanos worked = basis.host.own_time(own.thread, own.first, until);
    own_time += worked;
    waited += until - own.first - worked;
  }
  stats.host_ns = basis.per_step(own_time);
  stats.host_wait_ns = basis.per_step(waited);
}

}  // namespace

StepStats measure_steps(const Basis& basis) {
  StepStats stats;
  std::vector<Nanos> lengths;
  Nanos spans = 0, busy_time = 0, activity_time = 0;
  for (const run::Step& step : basis.run.steps) {
    if (step.kind == basis.run.kind) ++stats.found;
    if (!step.used) continue;
    lengths.push_back(step.length());
    activity_time = add(activity_time, sum_of_activities(basis.run, step));
    const store::Span span = device_span(basis.run, step);
    if (span.empty()) continue;
    spans += span.length();
    busy_time += busy(basis.segments, span);
  }
  stats.used = basis.steps;
  if (lengths.empty()) return stats;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t n = lengths.size();
  stats.mean = basis.mean;
  stats.median = (lengths[(n - 1) / 2] + lengths[n / 2]) / 2;
  stats.p99 = lengths[(n * 99 + 99) / 100 - 1];  // nearest rank
  stats.device_span = basis.per_step(spans);
  stats.busy_ns = basis.per_step(busy_time);
  stats.activity_ns = basis.per_step(activity_time);
  if (spans > 0) stats.device_busy = static_cast<double>(busy_time) / static_cast<double>(spans);
  measure_host(basis, stats);
  return stats;
}

void find_tokens(const Basis& basis, const std::vector<KernelFigures>& kernels, StepStats& steps) {
  std::vector<std::int64_t> marked;
  for (const run::Step& step : basis.run.steps) {
    if (!step.used) continue;
    const std::optional<std::int64_t> tokens = step.tokens ? step.tokens : step.batch;
    if (tokens) marked.push_back(*tokens);
  }
  if (!marked.empty()) {
    steps.tokens = *std::max_element(marked.begin(), marked.end());
    steps.tokens_how = "mark";
    return;
  }
  // A norm has one block per row; norms of single heads have more rows than tokens, so the largest
  // grid is an upper bound.
  for (const KernelFigures& kernel : kernels) {
    const run::Group& group = basis.run.groups[kernel.group.index];
    if (group.kind != known::Owner::kNorm || group.grid[0] <= 0) continue;
    steps.tokens = std::max<std::int64_t>(steps.tokens.value_or(0), group.grid[0]);
    steps.tokens_how = "norm grid";
  }
}

}  // namespace culprit::evidence
