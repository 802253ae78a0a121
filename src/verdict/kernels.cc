// What the judges of kernels share.
#include <algorithm>
#include <cmath>

#include "verdict/judges.h"

namespace culprit::verdict {

bool accused(const Verdict& verdict, std::size_t kernel) {
  return std::any_of(verdict.suspects.begin(), verdict.suspects.end(), [&](const Suspect& suspect) {
    return std::find(suspect.kernels.begin(), suspect.kernels.end(), kernel) !=
           suspect.kernels.end();
  });
}

Nanos exposed_by(const Verdict& verdict, std::string_view id) {
  Nanos exposed = 0;
  for (const Suspect& suspect : verdict.suspects) {
    if (suspect.id == id) exposed += suspect.exposed_ns_per_step;
  }
  return exposed;
}

std::vector<run::GroupId> groups_of(const evidence::Evidence& evidence,
                                    std::span<const std::size_t> kernels) {
  std::vector<run::GroupId> groups;
  groups.reserve(kernels.size());
  for (const std::size_t kernel : kernels) groups.push_back(evidence.kernels[kernel].group);
  return groups;
}

Suspect accuse_kernels(evidence::Evidence& evidence, std::string_view id,
                       std::span<const std::size_t> kernels) {
  Suspect suspect;
  suspect.id = id;
  suspect.facts.push_back(fact_named(evidence, "steps.mean_ns"));
  for (const std::size_t index : kernels) {
    const evidence::KernelFigures& kernel = evidence.kernels[index];
    suspect.kernels.push_back(index);
    suspect.ns_per_step += kernel.ns_per_step;
    const bool new_place = kernel.source && std::find(suspect.where.begin(), suspect.where.end(),
                                                      *kernel.source) == suspect.where.end();
    if (new_place) suspect.where.push_back(*kernel.source);
    const evidence::KernelFacts stated = evidence::state_kernel(evidence, index);
    for (const std::string& fact : {stated.calls, stated.time, stated.average, stated.exposed,
                                    stated.elements, stated.bytes, stated.gbps, stated.of_peak}) {
      if (!fact.empty()) suspect.facts.push_back(fact);
    }
  }
  suspect.exposed_ns_per_step =
      evidence::exposed_ns_per_step(*evidence.run, groups_of(evidence, kernels));
  return suspect;
}

std::int64_t times_per_layer(const evidence::Evidence& evidence, double calls_per_step) {
  const std::int64_t layers = evidence.run->layers.count.value_or(0);
  if (layers < 2) return 0;
  const double times = calls_per_step / static_cast<double>(layers);
  const std::int64_t whole = std::llround(times);
  return whole >= 1 && std::abs(times - static_cast<double>(whole)) < 1e-6 ? whole : 0;
}

}  // namespace culprit::verdict
