// host-launch: the device stands still because its next launch comes late.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

std::string claim_text(const evidence::Evidence& evidence, double launches) {
  const Nanos idle = time_of(evidence, Owner::kIdleHostLaunch);
  std::string claim = fmt::format(
      "The device waits for the host to launch its next kernel: {} is idle time that ended with a "
      "late launch",
      cost_text(evidence, idle));
  if (launches >= 1) {
    const double per_launch = static_cast<double>(evidence.steps.host_ns) / launches;
    claim += fmt::format("; the host needs {} for each of {} launches",
                         text::duration(std::llround(per_launch), false),
                         text::count(std::llround(launches)));
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
  if (row == nullptr || row->share < kLeastShare) return;
  double launches = 0;
  for (const evidence::KernelFigures& kernel : evidence.kernels) launches += kernel.calls_per_step;

  Suspect suspect;
  suspect.id = "host-launch";
  suspect.confidence = confidence_of(evidence);
  suspect.claim = claim_text(evidence, launches);
  suspect.ns_per_step = suspect.exposed_ns_per_step = row->ns_per_step;
  const std::array cured{Owner::kIdleHostLaunch};
  set_cost(evidence, cured, suspect);
  suspect.facts = {
      fact_named(evidence, "idle-host-launch.ns_per_step"), fact_named(evidence, "steps.mean_ns"),
      fact_named(evidence, "steps.device_busy"),
      evidence.add("steps.activities", launches, "1", "kernels, copies and sets per used step",
                   "culprit kernels TRACE --json --all | jq "
                   "'[.kernels[].calls_per_step] | add'")};
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
