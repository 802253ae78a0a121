// What other processes of the file ran on the device of the run. Two processes may both call two
// different boards "device 0": they share one if what the neighbour runs lies beside what the run
// does, and hardly ever at the same time.
#include "evidence/evidence.h"

namespace culprit::evidence {
namespace {

// Activities of the same rank label and device id that are not the run's own, in time order.
store::SpanSet others_of(const run::Run& run) {
  const store::Trace& trace = *run.trace;
  std::vector<bool> own(trace.device.size(), false);
  for (const run::Activity& activity : run.activities) own[activity.row.index] = true;
  std::vector<store::Span> spans;
  for (std::size_t row = 0; row < trace.device.size(); ++row) {
    const store::ThreadId thread = trace.device.thread[row];
    if (own[row] || trace.device.device[row] != run.device || !thread.valid()) continue;
    if (trace.threads[thread.index].rank != run.rank) continue;
    spans.push_back({trace.device.begin[row], trace.device.begin[row] + trace.device.dur[row]});
  }
  return store::union_of(std::move(spans));
}

// Between two recorded kernels of one replay: the second was queued all the time.
bool in_replay(const run::Run& run, const Gap& gap) {
  if (gap.owner != known::Owner::kGraph || !gap.before.valid() || !gap.after.valid()) return false;
  const run::Activity& before = run.activities[gap.before.index];
  const run::Activity& after = run.activities[gap.after.index];
  return before.call.valid() && before.call == after.call;
}

}  // namespace

Neighbours find_neighbours(const Evidence& evidence) {
  const run::Run& run = *evidence.run;
  Neighbours neighbours;
  if (run.process == store::StringId(0) || evidence.steps.used == 0) return neighbours;
  const store::SpanSet others = others_of(run);
  std::vector<store::Span> steps, ours, queued;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    steps.push_back({step.begin, step.end});
    for (std::int64_t i = step.first; i < step.last; ++i) {
      const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
      ours.push_back({activity.begin, activity.end});
    }
  }
  for (const Gap& gap : evidence.gaps) {
    if (gap.owner == known::Owner::kUnexplained || in_replay(run, gap))
      queued.push_back({gap.begin, gap.end});
  }
  const auto in_steps = [&](std::vector<store::Span> spans) {
    return store::total(store::intersect(others, store::union_of(std::move(spans)))) /
           evidence.steps.used;
  };
  neighbours.ns_per_step = in_steps(std::move(steps));
  neighbours.with_ours_per_step = in_steps(std::move(ours));
  neighbours.while_queued_per_step = in_steps(std::move(queued));
  return neighbours;
}

}  // namespace culprit::evidence
