// blocking-copy: a large copy between pageable host memory and the device. The driver stages it, the
// host stands in the call, and the device does nothing else meanwhile and until the host is back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "known/kernel_name.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;

constexpr double kLeastShare = 0.03;
// A few tokens cross in a microsecond or two: what then costs is the wait, which is host-sync's.
constexpr Nanos kLargeCopy = 20'000;

struct Copies {
  std::vector<std::size_t> kernels;  // indices into Evidence::kernels
  double calls = 0;                  // per step
  Nanos behind = 0;                  // idle behind them, per step
};

bool is_pageable_copy(const run::Run& run, run::GroupId id) {
  const run::Group& group = run.groups[id.index];
  return group.device_kind == store::DeviceKind::kMemcpy &&
         run.trace->strings.or_empty(group.name).find("Pageable") != std::string_view::npos;
}

Copies find_copies(const Evidence& evidence) {
  Copies copies;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const evidence::KernelFigures& kernel = evidence.kernels[i];
    if (kernel.avg_ns < kLargeCopy || !is_pageable_copy(*evidence.run, kernel.group)) continue;
    copies.kernels.push_back(i);
    copies.calls += kernel.calls_per_step;
  }
  for (const evidence::Gap& gap : evidence.gaps) {
    if (is_behind_blocking_copy(evidence, gap)) copies.behind += gap.end - gap.begin;
  }
  copies.behind /= std::max<std::int64_t>(1, evidence.steps.used);
  return copies;
}

void examine(Evidence& evidence, Verdict& verdict) {
  const Copies copies = find_copies(evidence);
  if (copies.kernels.empty()) return;
  const Nanos exposed = copies.behind + evidence::exposed_ns_per_step(
                                            *evidence.run, groups_of(evidence, copies.kernels));
  if (static_cast<double>(exposed) < kLeastShare * static_cast<double>(evidence.steps.mean)) return;
  Suspect suspect = accuse_kernels(evidence, "blocking-copy", copies.kernels);
  suspect.ns_per_step += copies.behind;
  suspect.exposed_ns_per_step = exposed;
  const evidence::KernelFigures& largest = evidence.kernels[copies.kernels.front()];
  suspect.confidence = Confidence::kLikely;
  suspect.claim = fmt::format(
      "{} copies a step between the device and pageable host memory, {} each{}: the host stands in "
      "the call, and the device is idle for {} behind them",
      text::amount(copies.calls), text::duration(largest.avg_ns, true),
      largest.bytes ? fmt::format(" ({})", text::bytes(*largest.bytes)) : "",
      text::duration(copies.behind, true));
  Cure cure{scaled(evidence, groups_of(evidence, copies.kernels), 0),
            {known::Owner::kMemcpy, known::Owner::kIdleHostSync}};
  cure.change.no_waits = true;
  set_cost(evidence, cure, suspect);
  suspect.facts.push_back(
      evidence.add("blocking_copy.idle_behind_ns", static_cast<double>(copies.behind), "ns",
                   "idle device time per step whose launch waited for such a copy",
                   own_query("blocking_copy.idle_behind_ns")));
  suspect.disproved_if = "the step takes as long with the copy left out";
  suspect.fix = "leave the data on the device (sample there) and copy only the tokens";
  suspect.alternatives = {"copy to pinned memory with non_blocking=True and read it one step later",
                          "copy on a stream of its own, so that kernels go on meanwhile"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

bool is_behind_blocking_copy(const Evidence& evidence, const evidence::Gap& gap) {
  if (gap.owner != known::Owner::kIdleHostSync || !gap.before.valid()) return false;
  const run::Activity& before = evidence.run->activities[gap.before.index];
  return before.call == gap.call && before.end - before.begin >= kLargeCopy &&
         is_pageable_copy(*evidence.run, before.group);
}

const Judge kBlockingCopy{
    {"blocking-copy", "large copies between the device and pageable host memory that nothing hides",
     "copies in the trace", "the step takes as long without the copy"},
    examine};

}  // namespace culprit::verdict
