// Who owns an idle nanosecond of the device. The rules, in order, each for the gap [b, e) that
// activity A ended, launched by call C of host thread T:
//   graph             A and the activity before the gap are of one graph replay, or a replay whose
//                     kernels were not recorded was launched between the two.
//   unexplained       A's launch is not in the file, or a launch between the two lost its kernel,
//                     which may have run here; or A began before its launch, so that the clocks
//                     cannot be compared; or C had returned before the gap began, so A stood in the
//                     queue: device-side latency, events of other streams.
//   idle-host-sync    C came late, and at b the thread T sat in a call that waits for the device:
//                     without it, C would have been queued while the device still worked.
//   idle-host-work    C came late, and T made no call for more than half of the gap, and the gap is
//                     longer than 10 launches usually take: T did something else than launching.
//   idle-host-launch  C came late otherwise: the device waits for T to launch.
// C came late when it had not returned at b, or when A began as soon after C as launches ever reach
// an idle device ("reach", measured). Where A still began long after C had returned, the device kept
// it waiting: the gap is cut in two, and the second part is unexplained.
#include <algorithm>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using known::Owner;

// A launch reaches an idle device within microseconds; a measured median outside this range is
// clock skew between host and device, or another wait.
constexpr Nanos kShortestReach = 2'000, kLongestReach = 50'000;
constexpr Nanos kUsualReach = 10'000;  // where the run has too few late launches to measure
constexpr std::size_t kReachSamples = 8;
// Host and device clocks agree to a few us (negative launch latencies of 2.3 us are on record,
// pytorch/kineto#1380): a wait that seems to end this shortly before the gap did hold the launch.
constexpr Nanos kClockSlack = 5'000;
constexpr Nanos kLargestSkew = Nanos{1} << 60;  // hostile times must not overflow
constexpr Nanos kQueuedFactor =
    4;  // in reaches: below it, latency scatters; above it, A was held up
constexpr Nanos kWorkFactor = 10;  // in launch spacings
// What a launch costs in a Python engine; a spacing outside is the loop's, not the launch's.
constexpr Nanos kShortestSpacing = 5'000, kLongestSpacing = 100'000;

Gap clipped(const run::Step& step, run::StepIndex index, Nanos begin, Nanos end) {
  Gap gap;
  gap.begin = std::max(begin, step.begin);
  gap.end = std::min(end, step.end);
  gap.step = index;
  return gap;
}

void idle_times(const Basis& basis, run::StepIndex index, std::vector<Gap>& gaps) {
  const run::Step& step = basis.run.steps[static_cast<std::size_t>(index)];
  const std::vector<Segment>& segments = basis.segments;
  const auto add = [&](Nanos begin, Nanos end, run::ActivityId before, run::ActivityId after) {
    Gap gap = clipped(step, index, begin, end);
    if (gap.end <= gap.begin) return;
    gap.before = before;
    gap.after = after;
    gaps.push_back(gap);
  };
  if (segments.empty()) return add(step.begin, step.end, {}, {});
  add(step.begin, segments.front().begin, {}, segments.front().owner);
  for (std::size_t i = segment_at(segments, step.begin);
       i < segments.size() && segments[i].begin < step.end; ++i) {
    if (!segments[i].idle()) continue;  // idle segments lie between two busy ones
    add(segments[i].begin, segments[i].end, segments[i - 1].owner, segments[i + 1].owner);
  }
  add(segments.back().end, step.end, segments.back().owner, {});
}

class GapRules {
 public:
  GapRules(const Basis& basis, const std::vector<Gap>& gaps)
      : run_(basis.run), host_(basis.host), calls_(basis.run.trace->calls) {
    spacing_ = std::clamp(host_.launch_spacing(), kShortestSpacing, kLongestSpacing);
    measure_skew();
    measure_reach(gaps);
  }

  // One gap, or two where it was cut; appended to `out`.
  void explain(Gap gap, std::vector<Gap>& out) const {
    gap.call = call_of(gap.after);
    if (inside_graph(gap)) {
      gap.owner = Owner::kGraph;
    } else if (!gap.after.valid()) {
      explain_end(gap);
    } else if (!gap.call.valid() || lost_kernel_in(gap) || !came_late(gap)) {
      gap.owner = Owner::kUnexplained;
    } else if (const Nanos ready = issued(gap.call) + reach_;
               ready > gap.begin && gap.end - ready > kQueuedFactor * reach_) {
      Gap queued = gap;
      gap.end = queued.begin = ready;
      blame_host(gap, gap.call, calls_.begin[gap.call.index]);
      queued.owner = Owner::kUnexplained;
      out.push_back(gap);
      gap = queued;
    } else {
      blame_host(gap, gap.call, calls_.begin[gap.call.index]);
    }
    out.push_back(gap);
  }

 private:
  store::CallRow call_of(run::ActivityId id) const {
    return id.valid() ? run_.activities[id.index].call : store::CallRow{};
  }

  // How far activities of a step begin before their launches. The clocks are apart by that much at
  // least, all through the step.
  void measure_skew() {
    skew_.assign(run_.steps.size(), 0);
    for (const run::Activity& a : run_.activities) {
      if (!a.call.valid() || a.step < 0) continue;
      Nanos& skew = skew_[static_cast<std::size_t>(a.step)];
      skew = std::max(skew, calls_.begin[a.call.index] - a.begin);
    }
    for (Nanos& skew : skew_) skew = skew <= kClockSlack ? 0 : std::min(skew, kLargestSkew);
  }

  bool skewed(const run::Activity& a) const {
    return a.call.valid() && calls_.begin[a.call.index] > a.begin;
  }

  bool lost_kernel_in(const Gap& gap) const {
    return host_.unrecorded_kernel_between(call_of(gap.before), gap.call);
  }

  void measure_reach(const std::vector<Gap>& gaps) {
    std::vector<Nanos> reaches;
    for (const Gap& gap : gaps) {
      const store::CallRow call = call_of(gap.after);
      if (call.valid() && calls_.begin[call.index] >= gap.begin &&
          !skewed(run_.activities[gap.after.index])) {
        reaches.push_back(run_.activities[gap.after.index].begin - calls_.begin[call.index]);
      }
    }
    if (reaches.size() < kReachSamples) return;
    const auto middle = reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2);
    std::nth_element(reaches.begin(), middle, reaches.end());
    reach_ = std::clamp(*middle, kShortestReach, kLongestReach);
  }

  bool inside_graph(const Gap& gap) const {
    if (!gap.before.valid() || !gap.after.valid()) return false;
    const run::Activity& before = run_.activities[gap.before.index];
    const run::Activity& after = run_.activities[gap.after.index];
    if (before.in_graph && after.in_graph && before.call.valid() && before.call == after.call) {
      return true;
    }
    return host_.unrecorded_graph_between(before.call, after.call);
  }

  // When the device could have known of the call: a blocking copy stays in the call until it is done.
  Nanos issued(store::CallRow call) const {
    return host_.waits(call) ? calls_.begin[call.index] : host_.end(call);
  }

  bool came_late(const Gap& gap) const {
    const run::Activity& after = run_.activities[gap.after.index];
    if (skewed(after)) return false;
    const Nanos skew = skew_[static_cast<std::size_t>(gap.step)];
    return issued(gap.call) - skew > gap.begin ||
           after.begin - calls_.begin[gap.call.index] + skew <= 2 * reach_;
  }

  // Nothing followed on the device: what did the thread that launched last do until the step ended?
  void explain_end(Gap& gap) const {
    gap.owner = Owner::kUnexplained;
    const store::CallRow last = call_of(gap.before);
    if (!last.valid() || skewed(run_.activities[gap.before.index])) return;
    if (skew_[static_cast<std::size_t>(gap.step)] > 0) return;
    if (!host_.unrecorded_kernel_behind(last)) blame_host(gap, last, gap.end);
  }

  // `launched`: when the thread that made `call` launched what ended the gap.
  void blame_host(Gap& gap, store::CallRow call, Nanos launched) const {
    const store::ThreadId thread = calls_.thread[call.index];
    const store::CallRow running = host_.last_begun(thread, gap.begin);
    if (running.valid() && host_.waits(running) && running != gap.call &&
        host_.end(running) >= gap.begin - kClockSlack) {
      gap.owner = Owner::kIdleHostSync;
      gap.call = running;
      return;
    }
    const Nanos length = gap.end - gap.begin;
    const Nanos until = std::clamp(launched, gap.begin, gap.end);
    const bool works = length > kWorkFactor * spacing_ &&
                       2 * host_.longest_silence(thread, gap.begin, until) > length;
    gap.owner = works ? Owner::kIdleHostWork : Owner::kIdleHostLaunch;
  }

  const run::Run& run_;
  const HostView& host_;
  const store::CallTable& calls_;
  Nanos spacing_ = kShortestSpacing;
  Nanos reach_ = kUsualReach;
  std::vector<Nanos> skew_;  // by step; 0: none that matters
};

}  // namespace

std::vector<Gap> measure_gaps(const Basis& basis) {
  std::vector<Gap> idle;
  idle.reserve(basis.segments.size() / 2 + 2 * basis.run.steps.size());
  for (std::size_t i = 0; i < basis.run.steps.size(); ++i) {
    if (basis.run.steps[i].used) idle_times(basis, static_cast<run::StepIndex>(i), idle);
  }
  const GapRules rules(basis, idle);
  std::vector<Gap> gaps;
  gaps.reserve(idle.size());
  for (const Gap& gap : idle) rules.explain(gap, gaps);
  find_stalls(basis, gaps);
  return gaps;
}

}  // namespace culprit::evidence
