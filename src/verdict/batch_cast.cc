// batch-cast: activations, or the live keys that were gathered, are converted by kernels of their own
// instead of by the kernel that writes or reads them. The cost follows the batch and its context.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;
using known::Owner;

constexpr double kLeastShare = 0.03;

struct Casts {
  std::vector<std::size_t> kernels;
  double calls = 0;
  bool shaped = true;   // every one of them recorded its shape
  bool by_rows = true;  // ... whose rows are the step's tokens
  bool sized = true;    // every one is as large as an activation of the step's tokens
};

// Whether the tensor has a row per token, or per token and head.
bool follows_tokens(const Evidence& evidence, const KernelFigures& kernel) {
  const std::int64_t tokens = evidence.steps.tokens.value_or(0);
  return tokens > 0 && !kernel.dims.empty() && kernel.dims.front() % tokens == 0;
}

// Whether the grid leaves room for whole rows of an activation, and no more. Weights are larger.
bool sized_by_tokens(const Evidence& evidence, const KernelFigures& kernel) {
  constexpr std::int64_t kNarrowestRow = 64, kWidestRow = 32'768, kSmallestWeight = 4'000'000;
  const std::int64_t tokens = evidence.steps.tokens.value_or(0);
  if (tokens <= 0 || !kernel.elements || kernel.elements->max >= kSmallestWeight) return false;
  const std::int64_t row = kernel.elements->max / tokens;
  return row >= kNarrowestRow && row <= kWidestRow && kernel.elements->contains(row * tokens);
}

Casts find_casts(const Evidence& evidence, const Verdict& verdict) {
  Casts casts;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    const run::Group& group = evidence.run->groups[kernel.group.index];
    const bool cast = group.kind == Owner::kCast || group.info.casts;
    if (!cast || accused(verdict, i) || times_per_layer(evidence, kernel.calls_per_step) == 0)
      continue;
    casts.kernels.push_back(i);
    casts.calls += kernel.calls_per_step;
    casts.shaped = casts.shaped && !kernel.dims.empty();
    casts.by_rows = casts.by_rows && follows_tokens(evidence, kernel);
    casts.sized = casts.sized && sized_by_tokens(evidence, kernel);
  }
  return casts;
}

void examine(Evidence& evidence, Verdict& verdict) {
  if (evidence.run->kind == run::StepKind::kTraining) return;  // mixed precision casts by design
  const Casts casts = find_casts(evidence, verdict);
  if (casts.kernels.empty()) return;
  double share = 0;
  for (const std::size_t kernel : casts.kernels) share += evidence.kernels[kernel].share;
  if (share < kLeastShare) return;
  Suspect suspect = accuse_kernels(evidence, "batch-cast", casts.kernels);
  const KernelFigures largest = evidence.kernels[casts.kernels.front()];
  suspect.confidence = casts.by_rows                 ? Confidence::kCertain
                       : casts.shaped || casts.sized ? Confidence::kLikely
                                                     : Confidence::kPossible;
  const std::int64_t layers = evidence.run->layers.count.value_or(0);
  const std::string what =
      largest.dims.empty() ? ""
                           : fmt::format(", the largest of [{}]", fmt::join(largest.dims, ", "));
  suspect.claim = fmt::format(
      "Casts by kernels of their own, {} in each of {} layers, {} each{}: the cost follows the "
      "batch",
      text::amount(casts.calls / static_cast<double>(layers)), layers,
      text::duration(largest.avg_ns, true), what);
  set_cost(evidence, {scaled(evidence, groups_of(evidence, casts.kernels), 0), {Owner::kCast}},
           suspect);
  suspect.disproved_if =
      "the casts take as long at another batch: then they convert weights or a pool";
  suspect.fix =
      "convert in the kernel that writes the tensor, or let its reader take the type as it is";
  suspect.alternatives = {
      "keep one type through the layer (model dtype, router and norm weights alike)",
      "torch.compile fuses casts into their neighbours"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kBatchCast{
    {"batch-cast", "casts in every layer of tensors that follow the batch",
     "kernel names and layers; grids and the batch in the marks make it likely, shapes certain",
     "the casts take as long at another batch"},
    examine};

}  // namespace culprit::verdict
