// graph-missing and graph-launch: CUDA graphs that some decode steps do without, and graphs whose own
// launches hold the device up. Public cases: sgl-project/sglang#33483, vllm-project/vllm#40734 (a
// batch above the largest captured one runs eagerly, about four times as slow).
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using known::Owner;

// Profilers slow the host by more than this: less idle time may not be there without one.
constexpr double kLeastIdle = 0.1;

// Used steps that run one way: replayed as graphs, or launched kernel by kernel.
struct Side {
  std::int64_t steps = 0;
  Nanos length = 0, idle = 0, late = 0;  // in all; late: idle until the host launched
  std::int64_t launches = 0;
  std::int64_t smallest = 0, largest = 0;  // batch; 0: unknown
  Nanos mean(Nanos total) const { return steps > 0 ? total / steps : 0; }
  double share(Nanos total) const {
    return length > 0 ? static_cast<double>(total) / static_cast<double>(length) : 0;
  }
};

struct Sides {
  Side replayed, eager;
};

// A step is replayed where most of its activities are a graph's, eager where hardly any is; steps in
// between (pieces) are neither.
Sides split(const Evidence& evidence) {
  const run::Run& run = *evidence.run;
  std::vector<Nanos> idle(run.steps.size(), 0), late(run.steps.size(), 0);
  for (const evidence::Gap& gap : evidence.gaps) {
    const auto step = static_cast<std::size_t>(gap.step);
    idle[step] += gap.end - gap.begin;
    if (gap.owner == Owner::kIdleHostLaunch) late[step] += gap.end - gap.begin;
  }
  Sides sides;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const run::Step& step = run.steps[i];
    const std::int64_t activities = step.last - step.first;
    if (!step.used || activities == 0) continue;
    std::int64_t in_graph = 0;
    for (std::int64_t a = step.first; a < step.last; ++a) {
      in_graph += run.activities[static_cast<std::size_t>(a)].in_graph ? 1 : 0;
    }
    const bool mostly = 2 * in_graph > activities, hardly = 10 * in_graph < activities;
    if (!mostly && !hardly) continue;
    Side& side = mostly ? sides.replayed : sides.eager;
    ++side.steps;
    side.length += step.length();
    side.idle += idle[i];
    side.late += late[i];
    side.launches += activities - in_graph;
    const std::int64_t batch = step.batch.value_or(0);
    if (batch == 0) continue;
    side.smallest = side.smallest == 0 ? batch : std::min(side.smallest, batch);
    side.largest = std::max(side.largest, batch);
  }
  return sides;
}

bool beyond_largest(const Sides& sides) {
  return sides.replayed.largest > 0 && sides.eager.smallest > sides.replayed.largest;
}

std::string missing_text(const Sides& sides) {
  const Side& eager = sides.eager;
  const std::string which =
      beyond_largest(sides)
          ? fmt::format("No graph for batches above {}: {} steps of batch {} run",
                        sides.replayed.largest, eager.steps,
                        eager.smallest == eager.largest
                            ? std::to_string(eager.smallest)
                            : fmt::format("{} to {}", eager.smallest, eager.largest))
          : fmt::format("{} steps run", eager.steps);
  return fmt::format(
      "{} without a graph, {} launches and {} each, {} of it idle; {} steps that replay one take "
      "{}",
      which, text::count(eager.launches / eager.steps),
      text::duration(eager.mean(eager.length), true), text::percent(eager.share(eager.idle)),
      sides.replayed.steps, text::duration(sides.replayed.mean(sides.replayed.length), true));
}

// The steps without a graph, replayed: their device time, and the idle time that a replayed step has.
Gain eager_gain(const Sides& sides) {
  const Side& eager = sides.eager;
  Gain gain;
  gain.step_now = gain.high = eager.mean(eager.length);
  gain.low = eager.mean(eager.length - eager.idle);
  gain.expected = std::min(gain.high, gain.low + sides.replayed.mean(sides.replayed.idle));
  gain.bound_by_after = "gpu";
  if (eager.smallest > 0 && eager.smallest == eager.largest && gain.expected > 0) {
    gain.tokens_per_s_after =
        1e9 * static_cast<double>(eager.smallest) / static_cast<double>(gain.expected);
  }
  return gain;
}

void examine_missing(Evidence& evidence, Verdict& verdict) {
  constexpr double kMuchSlower = 1.3;
  if (evidence.run->kind != run::StepKind::kDecode) return;
  const Sides sides = split(evidence);
  const Side& eager = sides.eager;
  if (eager.steps == 0 || sides.replayed.steps == 0 || eager.share(eager.late) < kLeastIdle) return;
  const auto replayed = static_cast<double>(sides.replayed.mean(sides.replayed.length));
  if (static_cast<double>(eager.mean(eager.length)) < kMuchSlower * replayed) return;
  Suspect suspect;
  suspect.id = "graph-missing";
  suspect.confidence = beyond_largest(sides) ? Confidence::kCertain : Confidence::kLikely;
  suspect.claim = missing_text(sides);
  suspect.ns_per_step = suspect.exposed_ns_per_step = eager.late / evidence.steps.used;
  suspect.change.graph = true;
  suspect.share = static_cast<double>(suspect.exposed_ns_per_step) /
                  static_cast<double>(std::max<Nanos>(1, evidence.steps.mean));
  suspect.gain = eager_gain(sides);
  suspect.facts = {
      fact_named(evidence, "steps.mean_ns"), fact_named(evidence, "idle-host-launch.ns_per_step"),
      evidence.add("graphs.eager_step_ns", static_cast<double>(eager.mean(eager.length)), "ns",
                   "mean of the used steps without a graph", own_query("graphs.eager_step_ns")),
      evidence.add("graphs.eager_idle", eager.share(eager.idle), "1",
                   "idle device time / length of these steps", own_query("graphs.eager_idle")),
      evidence.add("graphs.replayed_step_ns", replayed, "ns",
                   "mean of the used steps that replay a graph",
                   own_query("graphs.replayed_step_ns"))};
  if (sides.replayed.largest > 0) {
    suspect.facts.push_back(
        evidence.add("graphs.largest_batch", static_cast<double>(sides.replayed.largest), "1",
                     "largest batch of a replayed step", own_query("graphs.largest_batch")));
  }
  suspect.disproved_if = "the steps take as long with a graph captured for their batch";
  suspect.fix = beyond_largest(sides) ? "capture graphs up to the batches that occur"
                                      : "find out why these steps fall back to single launches";
  suspect.alternatives = {"SGLang: --cuda-graph-max-bs, --cuda-graph-bs",
                          "vLLM: cudagraph_capture_sizes in --compilation-config; --max-num-seqs "
                          "at the largest captured",
                          "keep the batch at or below the largest captured one"};
  verdict.suspects.push_back(std::move(suspect));
}

// Graph launches that the device waited for.
struct Launches {
  Nanos late = 0, call = 0;  // in all; call: time inside these calls
  std::vector<store::CallRow> calls;
};

Launches late_graphs(const Evidence& evidence) {
  const run::Run& run = *evidence.run;
  Launches launches;
  for (const evidence::Gap& gap : evidence.gaps) {
    const bool late = gap.owner == Owner::kIdleHostLaunch && gap.after.valid() &&
                      gap.call.valid() && run.activities[gap.after.index].in_graph;
    if (!late) continue;
    launches.late += gap.end - gap.begin;
    if (!launches.calls.empty() && launches.calls.back() == gap.call) continue;
    launches.calls.push_back(gap.call);
    launches.call += run.trace->calls.dur[gap.call.index];
  }
  return launches;
}

void examine_launch(Evidence& evidence, Verdict& verdict) {
  const Launches launches = late_graphs(evidence);
  const auto late = static_cast<double>(launches.late);
  const double steps = static_cast<double>(std::max<std::int64_t>(1, evidence.steps.used));
  if (launches.calls.empty() ||
      late < kLeastIdle * steps * static_cast<double>(evidence.steps.mean)) {
    return;
  }
  const auto calls = static_cast<double>(launches.calls.size());
  const bool pieces = calls > 2 * steps;
  Suspect suspect;
  suspect.id = "graph-launch";
  suspect.confidence = evidence.known.tpot_ms ? Confidence::kCertain : Confidence::kLikely;
  const Nanos each = launches.call / static_cast<Nanos>(launches.calls.size());
  suspect.claim =
      fmt::format("The device waits for the launches of graphs: {} a step, {} inside each call{}",
                  text::amount(calls / steps), text::duration(each, true),
                  pieces ? "; the step is cut into pieces" : "");
  suspect.ns_per_step = suspect.exposed_ns_per_step = launches.late / evidence.steps.used;
  Cure cure{{}, {Owner::kIdleHostLaunch}};
  cure.change.graph = true;
  set_cost(evidence, cure, suspect);
  // A graph that is whole already has nothing to fold: its launch can only be made while another
  // runs.
  if (!pieces) suspect.gain = bound_gain(evidence, suspect.exposed_ns_per_step, cure.owners);
  suspect.facts = {fact_named(evidence, "steps.mean_ns"),
                   fact_named(evidence, "idle-host-launch.ns_per_step"),
                   evidence.add("graphs.late_launches", calls / steps, "1",
                                "graph launches per step that the device waited for",
                                own_query("graphs.late_launches")),
                   evidence.add("graphs.launch_ns", static_cast<double>(each), "ns",
                                "mean time inside such a call", own_query("graphs.launch_ns"))};
  suspect.disproved_if = "the step stays as long when its graphs are launched ahead of the device";
  suspect.fix = pieces ? "capture the whole step as one graph"
                       : "launch the next step's graph while this one runs (overlap scheduling)";
  suspect.alternatives = {"vLLM: cudagraph_mode FULL or FULL_DECODE_ONLY in place of PIECEWISE",
                          "SGLang: leave out --disable-overlap-schedule",
                          "fewer nodes in a graph (fused kernels) make its launch shorter; upload "
                          "it before the first use"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kGraphMissing{
    {"graph-missing", "decode steps launched kernel by kernel where others replay a graph",
     "steps of both ways; batches in the marks make it certain",
     "they take as long with a graph for their batch"},
    examine_missing};
const Judge kGraphLaunch{
    {"graph-launch", "idle device time that ends with the launch of a graph",
     "launches in the trace", "the step stays as long when graphs are launched ahead"},
    examine_launch};

}  // namespace culprit::verdict
