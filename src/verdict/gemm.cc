// repeated-read and gemm-inefficient: matrix multiplications that read the same weight several times
// a step, or that are far below both of their roofs.
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
using known::Owner;

bool is_gemm(const Evidence& evidence, const KernelFigures& kernel) {
  return evidence.run->groups[kernel.group.index].kind == Owner::kGemm;
}

std::string shape_text(const evidence::Matmul& matmul) {
  return fmt::format("[{}, {}] x [{}, {}]", matmul.m, matmul.k, matmul.k, matmul.n);
}

// Whether, in every used step, no attention and no communication comes between the first and the last
// call of the group, though there is some elsewhere: work of one place, not of one layer after the
// other.
bool at_one_place(const run::Run& run, run::GroupId group) {
  bool any = false, layered = false;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    std::int64_t first = -1, last = -1;
    for (std::int64_t i = step.first; i < step.last; ++i) {
      const run::Activity& a = run.activities[static_cast<std::size_t>(i)];
      layered |= a.kind == Owner::kAttention || known::is_comm(a.kind);
      if (a.group != group) continue;
      if (first < 0) first = i;
      last = i;
    }
    if (first < 0) continue;
    any = true;
    for (std::int64_t i = first; i < last; ++i) {
      const Owner kind = run.activities[static_cast<std::size_t>(i)].kind;
      if (kind == Owner::kAttention || known::is_comm(kind)) return false;
    }
  }
  return any && layered;
}

// Bytes of the weight that each call reads; 0: unknown. Without shapes the time is an upper bound.
double weight_bytes(const Evidence& evidence, const KernelFigures& kernel) {
  if (kernel.matmul && known::bits(kernel.dtype_in) > 0) {
    return static_cast<double>(kernel.matmul->n * kernel.matmul->k) * known::bits(kernel.dtype_in) /
           8;
  }
  return evidence.peak.gbps * static_cast<double>(kernel.avg_ns);
}

// The model's output matrix, where its size is the one that was read.
bool is_lm_head(const Evidence& evidence, const KernelFigures& kernel) {
  if (!evidence.known.model || !kernel.matmul) return false;
  const std::int64_t elements = kernel.matmul->n * kernel.matmul->k;
  for (const known::Tensor& tensor :
       known::tensors(*evidence.known.model, evidence.known.deployment)) {
    if (tensor.name == "lm_head" && tensor.elements == elements) return true;
  }
  return false;
}

// Without shapes: whether each call takes as long as reading the model's output matrix does.
bool takes_as_long_as_lm_head(const Evidence& evidence, const KernelFigures& kernel) {
  constexpr double kLeast = 0.4, kMost = 1.0;  // of the memory's peak
  if (!evidence.known.model || kernel.matmul || evidence.peak.gbps <= 0) return false;
  const double read = evidence.peak.gbps * static_cast<double>(kernel.avg_ns);
  for (const known::Tensor& tensor :
       known::tensors(*evidence.known.model, evidence.known.deployment)) {
    if (tensor.name != "lm_head") continue;
    const double bytes = static_cast<double>(tensor.elements) * known::bits(tensor.dtype) / 8;
    return bytes >= kLeast * read && bytes <= kMost * read;
  }
  return false;
}

void accuse_repeated(Evidence& evidence, std::size_t index, Verdict& verdict) {
  const std::array kernels{index};
  Suspect suspect = accuse_kernels(evidence, "repeated-read", kernels);
  const KernelFigures kernel = evidence.kernels[index];
  const double times = kernel.calls_per_step;
  suspect.exposed_ns_per_step =
      std::llround(static_cast<double>(suspect.exposed_ns_per_step) * (times - 1) / times);
  suspect.confidence = kernel.matmul || takes_as_long_as_lm_head(evidence, kernel)
                           ? Confidence::kLikely
                           : Confidence::kPossible;
  if (is_lm_head(evidence, kernel)) suspect.confidence = Confidence::kCertain;
  suspect.claim = fmt::format(
      "The same matrix is read {} times a step, one call after the other{}{}: {} each, and every "
      "call reads it anew",
      text::amount(times), is_lm_head(evidence, kernel) ? " (lm_head)" : "",
      kernel.matmul ? " " + shape_text(*kernel.matmul) : "", text::duration(kernel.avg_ns, true));
  set_cost(evidence, {scaled(evidence, groups_of(evidence, kernels), 1 / times), {}}, suspect);
  suspect.disproved_if = "each call multiplies another matrix of the same shape";
  suspect.fix = "one call for all rows: stack them and multiply once";
  suspect.alternatives = {"compute logits only for the last token of each request, in one call"};
  verdict.suspects.push_back(std::move(suspect));
}

void examine_repeated(Evidence& evidence, Verdict& verdict) {
  constexpr double kLeastShare = 0.03, kMostTimes = 512;
  constexpr double kLargeWeight = 64e6;  // bytes; smaller ones stay in the cache
  if (evidence.run->kind == run::StepKind::kTraining ||
      evidence.run->kind == run::StepKind::kPrefill)
    return;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    const double times = kernel.calls_per_step;
    if (times < 2 || times > kMostTimes) continue;
    if (!is_gemm(evidence, kernel) || accused(verdict, i)) continue;
    if (kernel.share * (times - 1) / times < kLeastShare) continue;
    if (weight_bytes(evidence, kernel) < kLargeWeight) continue;
    if (!at_one_place(*evidence.run, kernel.group)) continue;
    accuse_repeated(evidence, i, verdict);
  }
}

// Whether both roofs are known, or the memory's is the lower one on any device: a device that does fewer
// than kSlowest operations in the time of a byte is none that decodes.
bool roofs_known(const Evidence& evidence, const KernelFigures& kernel) {
  constexpr double kSlowest = 4;
  const auto& gpu = evidence.run->gpu;
  const int bits = known::bits(kernel.dtype_in);
  const double arithmetic = !gpu         ? 0
                            : bits == 16 ? gpu->gpu.half_tflops
                            : bits == 8  ? gpu->gpu.fp8_tflops
                                         : 0;
  return arithmetic > 0 ||
         (kernel.bytes && kernel.matmul->flops() <= kSlowest * static_cast<double>(*kernel.bytes));
}

void accuse_inefficient(Evidence& evidence, std::size_t index, Verdict& verdict) {
  constexpr double kReachable = 0.7;  // of the roof, by a kernel that suits the shape
  const std::array kernels{index};
  Suspect suspect = accuse_kernels(evidence, "gemm-inefficient", kernels);
  const KernelFigures kernel = evidence.kernels[index];
  const double faster = std::min(1.0, *kernel.of_peak / kReachable);
  suspect.exposed_ns_per_step =
      std::llround(static_cast<double>(suspect.exposed_ns_per_step) * (1 - faster));
  suspect.confidence = Confidence::kLikely;
  suspect.claim =
      fmt::format("{} of {} a step, {} each, reach {} of the {} roof", shape_text(*kernel.matmul),
                  text::amount(kernel.calls_per_step), text::duration(kernel.avg_ns, true),
                  text::percent(*kernel.of_peak),
                  kernel.regime == evidence::Regime::kCompute ? "arithmetic" : "memory");
  set_cost(evidence, {scaled(evidence, groups_of(evidence, kernels), faster), {}}, suspect);
  suspect.disproved_if = "another kernel for this shape takes as long, on the same data";
  suspect.fix = "another kernel for this shape: autotune, split the reduction, another library";
  suspect.alternatives = {
      "torch.compile with max-autotune; cuBLASLt heuristics; tuned Triton configs for few rows",
      "pad or transpose the weight so that its rows are read in 16-byte pieces"};
  verdict.suspects.push_back(std::move(suspect));
}

void examine_inefficient(Evidence& evidence, Verdict& verdict) {
  constexpr double kLeastShare = 0.05;
  // Large GEMMs reach half of the arithmetic peak at best on some devices; small ones, most of the
  // memory's.
  constexpr double kFarBelowMemory = 0.35, kFarBelowArithmetic = 0.25;
  constexpr Nanos kLong = 10'000;  // shorter ones are bound by latency
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    const double limit =
        kernel.regime == evidence::Regime::kCompute ? kFarBelowArithmetic : kFarBelowMemory;
    const bool far = kernel.matmul && kernel.of_peak && *kernel.of_peak < limit &&
                     kernel.regime != evidence::Regime::kLatency;
    if (!far || kernel.share < kLeastShare || kernel.avg_ns < kLong || accused(verdict, i))
      continue;
    if (!roofs_known(evidence, kernel)) continue;
    accuse_inefficient(evidence, i, verdict);
  }
}

}  // namespace

const Judge kRepeatedRead{
    {"repeated-read",
     "one large matrix multiplication several times in a row, once per row of work",
     "kernel names and times; shapes or --model make it likely, both certain",
     "each call multiplies another matrix"},
    examine_repeated};
const Judge kGemmInefficient{
    {"gemm-inefficient", "a GEMM of 10 us or more below 35 % of both of its roofs",
     "shapes, and the GPU's peaks", "another kernel for the shape takes as long"},
    examine_inefficient};

}  // namespace culprit::verdict
