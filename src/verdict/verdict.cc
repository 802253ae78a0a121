#include "verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

// Every suspect the tool knows. Order decides ties and the list for people; who comes first keeps a
// kernel, or an idle time, from those who come later.
constexpr std::array<const Judge*, 23> kJudges{
    &kStraggler,       &kWholePoolCast, &kWholePoolCopy, &kWeightDequant, &kBatchCast,
    &kLayoutCopy,      &kRepeatedRead,  &kLowOccupancy,  &kSingleBlock,   &kOversizedGrid,
    &kGemmInefficient, &kSmallKernels,  &kCommLatency,   &kExposedComm,   &kGraphMissing,
    &kGraphLaunch,     &kHostLaunch,    &kHostWork,      &kBlockingCopy,  &kHostSync,
    &kOutsideProcess,  &kPrefill,       &kStepStall};

constexpr double kCulpritShare = 1.0 / 3;
constexpr Nanos kCulpritLead = 2;  // times the next suspect
constexpr double kMinorShare = 0.02;

void rank(std::vector<Suspect>& suspects) {
  std::stable_sort(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) {
    return a.exposed_ns_per_step > b.exposed_ns_per_step;
  });
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    const Nanos next = i + 1 < suspects.size() ? suspects[i + 1].exposed_ns_per_step : 0;
    const bool leads = i == 0 && suspects[i].exposed_ns_per_step >= kCulpritLead * next;
    suspects[i].standing = suspects[i].share >= kCulpritShare && leads ? Standing::kCulprit
                           : suspects[i].share >= kMinorShare          ? Standing::kContributor
                                                                       : Standing::kMinor;
  }
}

// Inside a graph the device is idle only where it is known to be: a replay that is one row is work.
Nanos idle_time(const evidence::Evidence& evidence) {
  Nanos idle = 0, inside_graphs = 0;
  for (const evidence::BudgetRow& row : evidence.budget) {
    if (known::is_idle(row.owner) && row.owner != known::Owner::kGraph) idle += row.ns_per_step;
  }
  for (const evidence::Gap& gap : evidence.gaps) {
    if (gap.owner == known::Owner::kGraph) inside_graphs += gap.end - gap.begin;
  }
  return idle + inside_graphs / std::max<std::int64_t>(evidence.steps.used, 1);
}

constexpr double kMostIdle = 0.1;

// Where the device is hardly ever idle, that is said first.
std::string busy_text(const evidence::Evidence& evidence) {
  const auto step = static_cast<double>(evidence.steps.mean);
  const auto idle = static_cast<double>(idle_time(evidence));
  if (idle > kMostIdle * step) return {};
  return fmt::format("the device works {} of the step; ", text::percent((step - idle) / step));
}

std::string name_of(const Suspect& suspect) {
  return suspect.who.empty() ? suspect.id : suspect.id + " " + suspect.who;
}

std::string headline(const evidence::Evidence& evidence, const std::vector<Suspect>& suspects) {
  if (evidence.steps.mean <= 0) return "no single culprit: no step could be measured";
  if (!suspects.empty() && suspects.front().standing == Standing::kCulprit) {
    const Suspect& culprit = suspects.front();
    return fmt::format("{} costs {}", name_of(culprit),
                       cost_text(evidence, culprit.exposed_ns_per_step));
  }
  if (!suspects.empty() && suspects.front().standing == Standing::kContributor) {
    return fmt::format("no single culprit: {}the largest cause found is {}, {}",
                       busy_text(evidence), name_of(suspects.front()),
                       cost_text(evidence, suspects.front().exposed_ns_per_step));
  }
  if (evidence.budget.empty()) return "no single culprit: the step has no device time";
  const evidence::BudgetRow& largest = evidence.budget.front();
  return fmt::format("no single culprit: the largest part is {}, {}",
                     known::owner_name(largest.owner), cost_text(evidence, largest.ns_per_step));
}

// What works as well as it can: large kernels near the memory roof, and a device that is never idle.
void find_healthy(evidence::Evidence& evidence, Verdict& verdict) {
  constexpr double kNearRoof = 0.6, kLargeKernel = 0.02;
  const Nanos step = evidence.steps.mean, idle = idle_time(evidence);
  if (step > 0 && static_cast<double>(idle) <= kMostIdle * static_cast<double>(step)) {
    verdict.healthy.push_back(
        {"device-busy",
         fmt::format("the device works {} of the step",
                     text::percent(static_cast<double>(step - idle) / static_cast<double>(step))),
         idle});
  }
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const evidence::KernelFigures& kernel = evidence.kernels[i];
    if (accused(verdict, i) || kernel.share < kLargeKernel ||
        kernel.of_peak.value_or(0) < kNearRoof)
      continue;
    const run::Group& group = evidence.run->groups[kernel.group.index];
    const std::string_view name = group.info.short_name.empty()
                                      ? evidence.run->trace->strings.or_empty(group.name)
                                      : group.info.short_name;
    const double gain = static_cast<double>(kernel.ns_per_step) * (1 - *kernel.of_peak);
    verdict.healthy.push_back(
        {std::string(known::owner_name(group.kind)),
         fmt::format("{} reaches {} of the memory roof", name, text::percent(*kernel.of_peak)),
         static_cast<Nanos>(gain)});
  }
}

}  // namespace

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kCulprit:
      return "culprit";
    case Standing::kContributor:
      return "contributor";
    case Standing::kMinor:
      return "minor";
  }
  return "minor";
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kCertain:
      return "certain";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kPossible:
      return "possible";
  }
  return "possible";
}

Verdict judge(evidence::Evidence& evidence) {
  Verdict verdict;
  for (const Judge* each : kJudges) each->examine(evidence, verdict);
  yield_to_straggler(evidence, verdict);
  rank(verdict.suspects);
  find_healthy(evidence, verdict);
  verdict.headline = headline(evidence, verdict.suspects);
  return verdict;
}

std::vector<Rule> rules() {
  std::vector<Rule> rules;
  rules.reserve(kJudges.size());
  for (const Judge* each : kJudges) rules.push_back(each->rule);
  return rules;
}

}  // namespace culprit::verdict
