// weight-dequant: weights of few bits are unpacked to 16 bits before every matrix multiplication, for
// want of a kernel that reads them. Public cases: vllm-project/vllm#50814,
// huggingface/transformers#47923.
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

constexpr double kLeastShare = 0.02;

bool says_dequant(std::string_view name) {
  for (std::string_view word : {"dequant", "Dequant", "DEQUANT", "unpack_4bit"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// A weight of the model with as many elements; null without a model or a match.
std::optional<known::Tensor> weight_of(const Evidence& evidence, const KernelFigures& kernel) {
  if (!evidence.known.model || !kernel.elements) return std::nullopt;
  for (known::Tensor& tensor : known::tensors(*evidence.known.model, evidence.known.deployment)) {
    const bool fits = kernel.elements_exact ? tensor.elements == *kernel.elements_exact
                                            : kernel.elements->contains(tensor.elements);
    if (tensor.is_weight && fits) return std::move(tensor);
  }
  return std::nullopt;
}

// Weights do not follow the batch: a matrix, and no extent is the number of tokens.
bool dims_of_a_weight(const Evidence& evidence, const KernelFigures& kernel) {
  if (kernel.dims.size() < 2 || kernel.dims.size() > 3) return false;
  const std::int64_t tokens = evidence.steps.tokens.value_or(0);
  return std::all_of(kernel.dims.begin(), kernel.dims.end(),
                     [&](std::int64_t extent) { return extent >= 64 && extent != tokens; });
}

struct Found {
  std::vector<std::size_t> kernels;
  double calls = 0;
  bool named = false, shaped = false;
  std::optional<known::Tensor> weight;
};

Found find_dequants(const Evidence& evidence) {
  Found found;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    const run::Group& group = evidence.run->groups[kernel.group.index];
    const bool pool = std::any_of(evidence.pool_reads.begin(), evidence.pool_reads.end(),
                                  [&](const evidence::PoolRead& read) {
                                    return std::find(read.kernels.begin(), read.kernels.end(), i) !=
                                           read.kernels.end();
                                  });
    if (pool || times_per_layer(evidence, kernel.calls_per_step) == 0) continue;
    const bool matrix = group.kind == Owner::kGemm || group.kind == Owner::kMoeGemm ||
                        group.kind == Owner::kAttention;
    const bool named = !matrix && says_dequant(evidence.run->trace->strings.or_empty(group.name));
    const bool narrow = known::bits(kernel.dtype_in) > 0 && known::bits(kernel.dtype_in) <= 8;
    const bool widens = (group.kind == Owner::kCast || group.info.casts) &&
                        (narrow || kernel.dtype_in == known::Dtype::kUnknown);
    const bool shaped = dims_of_a_weight(evidence, kernel);
    std::optional<known::Tensor> weight =
        named || widens ? weight_of(evidence, kernel) : std::nullopt;
    if (!named && !(widens && (weight || (narrow && shaped)))) continue;
    found.kernels.push_back(i);
    found.calls += kernel.calls_per_step;
    found.named |= named;
    found.shaped |= shaped;
    if (!found.weight) found.weight = std::move(weight);
  }
  return found;
}

void examine(Evidence& evidence, Verdict& verdict) {
  if (evidence.run->kind == run::StepKind::kTraining) return;
  const Found found = find_dequants(evidence);
  if (found.kernels.empty()) return;
  double share = 0;
  for (const std::size_t kernel : found.kernels) share += evidence.kernels[kernel].share;
  if (share < kLeastShare) return;
  Suspect suspect = accuse_kernels(evidence, "weight-dequant", found.kernels);
  const int proofs = (found.named ? 1 : 0) + (found.shaped ? 1 : 0) + (found.weight ? 1 : 0);
  suspect.confidence = proofs >= 2   ? Confidence::kCertain
                       : found.named ? Confidence::kLikely
                                     : Confidence::kPossible;
  const KernelFigures& largest = evidence.kernels[found.kernels.front()];
  suspect.claim = fmt::format(
      "Weights are unpacked to 16 bits before each use: {} calls a step, {} each{}; their size "
      "does "
      "not follow the batch",
      text::count(std::llround(found.calls)), text::duration(largest.avg_ns, true),
      found.weight ? fmt::format(" ({}, {} elements)", found.weight->name,
                                 text::count(found.weight->elements))
                   : "");
  if (found.weight) {
    suspect.tensor =
        TensorMatch{found.weight->name, found.weight->shape,
                    std::string(known::dtype_name(found.weight->dtype)), found.weight->elements,
                    largest.elements_exact ? "exact" : "within-launch-rounding"};
  }
  set_cost(
      evidence,
      {scaled(evidence, groups_of(evidence, found.kernels), 0), {Owner::kQuantize, Owner::kCast}},
      suspect);
  suspect.disproved_if = "the kernel's time follows the batch: then it converts activations";
  suspect.fix = "a matrix kernel that reads the packed weights itself (Marlin, CUTLASS FP4 or FP8)";
  suspect.alternatives = {
      "unpack once at load, where the memory allows it: the GEMM then reads 16-bit weights",
      "SGLang and vLLM: --quantization with a native kernel for this GPU (check the log for a "
      "fallback)"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kWeightDequant{
    {"weight-dequant", "a kernel per layer that unpacks weights to 16 bits before a GEMM",
     "a telling kernel name, or a cast with shapes or --model",
     "the kernel's time follows the batch"},
    examine};

}  // namespace culprit::verdict
