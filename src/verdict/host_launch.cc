// host-launch: the device stands still because its next launch comes late.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

// Distinct calls that launched the activities of the used steps, per step: a graph launch is one.
double launches_per_step(const run::Run& run) {
  std::vector<store::CallRow> calls;
  std::int64_t steps = 0;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    ++steps;
    for (std::int64_t i = step.first; i < step.last; ++i) {
      const store::CallRow call = run.activities[static_cast<std::size_t>(i)].call;
      if (call.valid()) calls.push_back(call);
    }
  }
  std::sort(calls.begin(), calls.end());
  const auto distinct = std::unique(calls.begin(), calls.end()) - calls.begin();
  return steps > 0 ? static_cast<double>(distinct) / static_cast<double>(steps) : 0;
}

std::string claim_text(const evidence::Evidence& evidence, double launches) {
  std::string claim = "The device stands still until the host launches its next kernel";
  if (launches >= 1) {
    const double per_launch = static_cast<double>(evidence.steps.host_ns) / launches;
    claim += fmt::format(": {} launches a step, one every {} of the host's time",
                         text::count(std::llround(launches)),
                         text::duration(std::llround(per_launch), true));
  }
  return claim;
}

// A profiler slows the host: a step measured without it decides.
Confidence confidence_of(const evidence::Evidence& evidence) {
  constexpr double kAgree = 0.1;
  if (!evidence.known.tpot_ms) return Confidence::kLikely;
  const double profiled = static_cast<double>(evidence.steps.mean) / 1e6;
  const double ratio = *evidence.known.tpot_ms / profiled;
  return std::abs(ratio - 1) <= kAgree ? Confidence::kCertain : Confidence::kPossible;
}

void examine(evidence::Evidence& evidence, Verdict& verdict) {
  // Profilers slow the host by more than this: less idle time may not be there without one.
  constexpr double kLeastShare = 0.1;
  const evidence::BudgetRow* row = row_of(evidence, Owner::kIdleHostLaunch);
  if (row == nullptr) return;
  // What graphs explain is theirs.
  const Nanos late =
      row->ns_per_step - exposed_by(verdict, "graph-missing") - exposed_by(verdict, "graph-launch");
  if (static_cast<double>(late) < kLeastShare * static_cast<double>(evidence.steps.mean)) return;
  const double launches = launches_per_step(*evidence.run);

  Suspect suspect;
  suspect.id = "host-launch";
  suspect.confidence = confidence_of(evidence);
  suspect.claim = claim_text(evidence, launches);
  suspect.ns_per_step = suspect.exposed_ns_per_step = late;
  Cure graph{{}, {Owner::kIdleHostLaunch}};
  graph.change.graph = true;
  set_cost(evidence, graph, suspect);
  suspect.facts = {fact_named(evidence, "idle-host-launch.ns_per_step"),
                   fact_named(evidence, "steps.mean_ns"), fact_named(evidence, "steps.device_busy"),
                   evidence.add("steps.launches", launches, "1",
                                "distinct launch calls behind the activities of a used step",
                                own_query("steps.launches"))};
  suspect.disproved_if =
      "the step takes as long when it is replayed as a graph, or, without a profiler, is as short "
      "as "
      "its device time (--tpot)";
  suspect.fix = "replay the step as a CUDA graph: one launch instead of one per kernel";
  suspect.alternatives = {"fuse small kernels (torch.compile, fused norm, rope and quantisation)",
                          "raise the batch: the same launches serve more tokens",
                          "take work off the launching thread"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kHostLaunch{{"host-launch", "idle device time that ends with a launch which came late",
                         "launches in the trace", "the step takes as long as a graph replay"},
                        examine};

}  // namespace culprit::verdict
