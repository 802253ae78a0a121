#include "verdict/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;
using evidence::PoolRead;
using known::Owner;

// What one launch of the largest kernel wrote.
known::ElementInterval written(const Evidence& evidence, const PoolRead& read) {
  const KernelFigures& kernel = evidence.kernels[read.kernels.front()];
  if (read.pieces > 1) return {read.elements, read.elements};
  if (kernel.elements_exact) return {*kernel.elements_exact, *kernel.elements_exact};
  return kernel.elements.value_or(known::ElementInterval{read.elements, read.elements});
}

std::string written_text(const known::ElementInterval& interval) {
  return interval.min == interval.max
             ? text::count(interval.max)
             : fmt::format("{} to {}", text::count(interval.min), text::count(interval.max));
}

std::string elements_fact(Evidence& evidence, const PoolRead& read) {
  return evidence::state_kernel(evidence, read.kernels.front()).elements;
}

void rule_out_layout_copy(Evidence& evidence, const PoolRead& read, Verdict& verdict) {
  const KernelFigures& kernel = evidence.kernels[read.kernels.front()];
  if (!evidence.run->groups[kernel.group.index].info.casts) return;
  verdict.ruled_out.push_back({"layout-copy",
                               "the copy only rearranges its data",
                               "the kernel loads or stores with a cast, which a copy within one "
                               "type does not",
                               {evidence::state_kernel(evidence, read.kernels.front()).calls}});
}

void rule_out_batch_cast(Evidence& evidence, const PoolRead& read, Verdict& verdict) {
  const evidence::StepStats& steps = evidence.steps;
  if (!steps.tokens || *steps.tokens <= 0) return;
  const std::int64_t per_token = written(evidence, read).min / *steps.tokens;
  verdict.ruled_out.push_back(
      {"batch-cast",
       "the cast converts an activation of the batch",
       fmt::format("{} values for each token of the step ({}): no activation is that wide",
                   text::count(per_token), text::count(*steps.tokens)),
       {elements_fact(evidence, read)}});
}

// Blamed first in the cases on record; the rest of the model is listed by nearness in size.
constexpr std::array<std::string_view, 8> kUsualSuspects{"w13",  "w2",   "q_a",    "q_b",
                                                         "kv_a", "kv_b", "o_proj", "qkv"};

std::size_t usual_place(const std::string& name) {
  const auto place = std::find(kUsualSuspects.begin(), kUsualSuspects.end(), name);
  return static_cast<std::size_t>(place - kUsualSuspects.begin());
}

}  // namespace

std::vector<TensorVerdict> hold_against_model(const Evidence& evidence, const PoolRead& read) {
  std::vector<TensorVerdict> table;
  if (!evidence.known.model) return table;
  known::Deployment deployment = evidence.known.deployment;
  if (!deployment.batch) deployment.batch = evidence.steps.tokens;
  const known::ElementInterval elements = written(evidence, read);
  for (known::Tensor& tensor : known::tensors(*evidence.known.model, deployment)) {
    if (tensor.follows_pool) continue;
    const bool fits = elements.contains(tensor.elements);
    table.push_back({std::move(tensor), fits});
  }
  const auto distance = [&](const TensorVerdict& entry) {
    return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(1, entry.tensor.elements)) /
                             static_cast<double>(std::max<std::int64_t>(1, elements.max))));
  };
  std::stable_sort(table.begin(), table.end(), [&](const auto& a, const auto& b) {
    const std::size_t place_a = usual_place(a.tensor.name), place_b = usual_place(b.tensor.name);
    return place_a != place_b ? place_a < place_b : distance(a) < distance(b);
  });
  return table;
}

std::size_t usual_suspects(const std::vector<TensorVerdict>& table) {
  const auto rest = std::find_if(table.begin(), table.end(), [](const TensorVerdict& entry) {
    return usual_place(entry.tensor.name) == kUsualSuspects.size();
  });
  return static_cast<std::size_t>(rest - table.begin());
}

void rule_out_tensors(Evidence& evidence, const PoolRead& read,
                      std::span<const TensorVerdict> table, Verdict& verdict) {
  const std::string wrote = written_text(written(evidence, read));
  for (const TensorVerdict& entry : table) {
    if (entry.fits) continue;
    const known::Tensor& tensor = entry.tensor;
    verdict.ruled_out.push_back(
        {tensor.name + (tensor.is_weight ? "-dequant" : "-cast"),
         fmt::format("the cast converts {} of the model", tensor.name),
         fmt::format("{} elements, the kernel wrote {}", text::count(tensor.elements), wrote),
         {elements_fact(evidence, read)}});
  }
}

void rule_out_other_copies(Evidence& evidence, const PoolRead& read, Verdict& verdict) {
  rule_out_batch_cast(evidence, read, verdict);
  rule_out_layout_copy(evidence, read, verdict);
}

void rule_out_owners(const Evidence& evidence, const Suspect& suspect, Verdict& verdict) {
  struct Usual {
    Owner owner;
    std::string_view hypothesis, claim;
  };
  constexpr std::array<Usual, 6> kUsual{{
      {Owner::kMoeGemm, "moe-gemm", "the experts make the step slow"},
      {Owner::kGemm, "gemm", "the matrix multiplications make the step slow"},
      {Owner::kQuantize, "quantize", "quantising activations makes the step slow"},
      {Owner::kComm, "comm", "communication makes the step slow"},
      {Owner::kAttention, "attention", "attention itself makes the step slow"},
      {Owner::kIdleHostLaunch, "host-launch", "the host launches too slowly"},
  }};
  constexpr Nanos kFarLess = 3;  // times less than the suspect
  for (const Usual& usual : kUsual) {
    const evidence::BudgetRow* row = row_of(evidence, usual.owner);
    if (row == nullptr || kFarLess * row->ns_per_step > suspect.exposed_ns_per_step) continue;
    verdict.ruled_out.push_back(
        {std::string(usual.hypothesis),
         std::string(usual.claim),
         fmt::format("{}: all of it is less than a third of what {} costs",
                     cost_text(evidence, row->ns_per_step), suspect.id),
         {fact_named(evidence, fmt::format("{}.ns_per_step", known::owner_name(usual.owner)))}});
  }
}

}  // namespace culprit::verdict
