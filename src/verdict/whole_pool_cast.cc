// whole-pool-cast: attention reads 16-bit keys from an 8-bit KV pool, so a backend converts the whole
// pool of each layer in every step, however little of it is in use. Public cases: sgl-project/sglang
// #35291 (43.7 % of a DeepSeek-R1 decode step), PRs #35322, #36087.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "verdict/judges.h"
#include "verdict/tensor_table.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;
using evidence::PoolRead;
using known::Dtype;
using known::Owner;

bool told(const std::string& how) { return how == "flag" || how == "server" || how == "config"; }

// Whether the server's own size of the pool agrees, where it was given.
std::optional<bool> with_server(const Evidence& evidence, const PoolRead& read) {
  if (read.rows == 0) return std::nullopt;
  return known::is_stated_pool(read.rows, evidence.known.deployment);
}

Confidence confidence_of(const Evidence& evidence, const PoolRead& read,
                         const std::vector<TensorVerdict>& table) {
  const KernelFigures& kernel = evidence.kernels[read.kernels.front()];
  if (!kernel.doubt.empty() && !kernel.doubts_peak) return Confidence::kPossible;
  const bool shape_recorded = read.row_from == "dims" && kernel.dtype_in_how == "dims";
  const bool shape_derived =
      read.row_from == "model" && read.match == "exact" && told(kernel.dtype_in_how);
  const bool alone = std::none_of(table.begin(), table.end(),
                                  [](const TensorVerdict& entry) { return entry.fits; });
  const bool contradicted = with_server(evidence, read) == false;
  const bool counted = read.layers > 0;
  if ((shape_recorded || (shape_derived && alone)) && counted && !contradicted) {
    return Confidence::kCertain;
  }
  const bool placed = read.before_attention > 0.5 || read.row_from == "dims";
  return counted && placed ? Confidence::kLikely : Confidence::kPossible;
}

std::string conversion_text(const KernelFigures& kernel) {
  const std::string from = kernel.dtype_in == Dtype::kUnknown
                               ? std::string("its 8-bit type")
                               : std::string(known::dtype_name(kernel.dtype_in));
  const std::string to = kernel.dtype_out == Dtype::kUnknown
                             ? std::string("a 16-bit type")
                             : std::string(known::dtype_name(kernel.dtype_out));
  return fmt::format("from {} to {}", from, to);
}

std::string basis_text(const Evidence& evidence, const PoolRead& read) {
  std::string text;
  if (read.row_from == "assumed") {
    text += fmt::format("; assumed: rows of {} values, the usual latent row (--model settles it)",
                        read.row);
  } else if (read.row_from.empty()) {
    text += "; the pool's rows are unknown (--model settles it)";
  }
  if (evidence.kernels[read.kernels.front()].dtype_in_how == "inferred") {
    text += "; the source type is inferred (--kv-dtype settles it)";
  }
  if (const std::optional<bool> agrees = with_server(evidence, read)) {
    text += fmt::format("; the server states {} pool tokens: {}",
                        text::count(*evidence.known.deployment.pool_tokens),
                        *agrees ? "agrees" : "does not agree");
  }
  return text;
}

std::string claim_text(const Evidence& evidence, const PoolRead& read) {
  const KernelFigures& kernel = evidence.kernels[read.kernels.front()];
  const std::string pool =
      read.rows > 0 ? fmt::format("{} slots x {} values", text::count(read.rows), read.row)
                    : fmt::format("{} values", text::count(read.elements));
  const std::string which = read.tensors == 2  ? "key pool and value pool"
                            : read.tensors > 2 ? fmt::format("{} KV pools", read.tensors)
                                               : "KV pool";
  const std::string where = read.layers > 0
                                ? fmt::format("in each of {} layers", read.layers)
                                : fmt::format("{} times a step", text::amount(read.calls_per_step));
  return fmt::format(
      "The whole {} ({}{}) is converted {} {}, every step, however little of it is in use{}", which,
      pool, read.tensors > 1 ? " each" : "", conversion_text(kernel), where,
      basis_text(evidence, read));
}

void state_facts(Evidence& evidence, const PoolRead& read, std::vector<std::string>& facts) {
  if (read.layers > 0) {
    facts.push_back(evidence.add(
        "kv_pool.casts_per_layer", read.calls_per_step / static_cast<double>(read.layers), "1",
        fmt::format("calls per step / {} layers (from {})", read.layers, read.layers_from),
        evidence::sql_query(
            fmt::format("SELECT sum(calls_per_step) / {} FROM kernels WHERE kernel IN ({})",
                        read.layers, fmt::join(read.kernels, ", ")))));
  }
  if (read.rows > 0) {
    facts.push_back(
        evidence.add("kv_pool.rows", static_cast<double>(read.rows), "slot",
                     fmt::format("elements / {} (row from {})", read.row, read.row_from),
                     evidence::sql_query(fmt::format("SELECT tensor_elements / {} FROM suspects "
                                                     "WHERE id = 'whole-pool-cast'",
                                                     read.row))));
  }
}

// Time that gathering and casting the live entries takes, as a share of the cast's time now: 3 bytes
// per value (facts on the public whole-pool casts, section 10) at the bandwidth that the cast reaches,
// or what two kernels take at least. Live entries unknown: as if they were few.
double gather_share(const Evidence& evidence, const PoolRead& read) {
  constexpr double kTwoSmallKernels = 5'000;  // ns; one that does next to nothing takes 1 to 3 us
  const KernelFigures& kernel = evidence.kernels[read.kernels.front()];
  const auto now = static_cast<double>(std::max<Nanos>(1, kernel.avg_ns));
  const std::int64_t active = evidence.known.deployment.active_tokens.value_or(0);
  const double live =
      read.rows > 0 ? static_cast<double>(active) / static_cast<double>(read.rows) : 0;
  return std::min(1.0, std::max(live, kTwoSmallKernels / now));
}

std::vector<Remedy> remedies(const Evidence& evidence, const PoolRead& read,
                             std::span<const run::GroupId> groups, const Gain& gone) {
  const std::optional<std::int64_t> active = evidence.known.deployment.active_tokens;
  const Cure gather{scaled(evidence, groups, gather_share(evidence, read)), {Owner::kCast}};
  const auto saved = static_cast<double>(gone.step_now - gone.expected);
  return {
      {"gather",
       active ? fmt::format("gather the {} live entries and cast those", text::count(*active))
              : "gather the live entries and cast those (few of them; --active-tokens says how "
                "many)",
       gain_of(evidence, static_cast<Nanos>(saved * (1 - gather_share(evidence, read))), gather)},
      {"fused", "attention converts in registers while it reads, and takes no longer than now",
       gone},
      {"native-fp8", "a backend that computes on the 8-bit pool itself: no conversion at all",
       gone}};
}

// All pool reads are one suspect, told by the largest.
Suspect accuse(Evidence& evidence, const PoolRead& read, const std::vector<TensorVerdict>& table) {
  std::vector<std::size_t> kernels;
  for (const PoolRead& each : evidence.pool_reads) {
    if (each.copies) continue;
    kernels.insert(kernels.end(), each.kernels.begin(), each.kernels.end());
  }
  Suspect suspect = accuse_kernels(evidence, "whole-pool-cast", kernels);
  suspect.confidence = confidence_of(evidence, read, table);
  suspect.claim = claim_text(evidence, read);
  set_cost(evidence, {scaled(evidence, groups_of(evidence, kernels), 0), {Owner::kCast}}, suspect);
  suspect.tensor = TensorMatch{"kv_pool", read.shape, {}, read.elements, read.match};
  const Dtype source = evidence.kernels[read.kernels.front()].dtype_in;
  if (source != Dtype::kUnknown) suspect.tensor->dtype = known::dtype_name(source);
  const std::optional<std::int64_t> active = evidence.known.deployment.active_tokens;
  if (active && read.rows > 0) {
    suspect.live_fraction =
        std::min(1.0, static_cast<double>(*active) / static_cast<double>(read.rows));
  }
  state_facts(evidence, read, suspect.facts);
  suspect.disproved_if =
      "the kernel takes as long with a pool of half the size (--max-total-tokens), or is still "
      "launched with a 16-bit KV pool";
  suspect.fix = "gather the active entries of the pool, then convert only those";
  suspect.alternatives = {
      "SGLang: --attention-backend flashmla, trtllm_mla or another that reads FP8 on this GPU",
      "vLLM: an attention backend with FP8 KV support for this GPU (VLLM_ATTENTION_BACKEND)",
      "control, not cure: a BF16 KV pool has no cast, at half the capacity"};
  suspect.remedies = remedies(evidence, read, groups_of(evidence, kernels), suspect.gain);
  return suspect;
}

void examine(Evidence& evidence, Verdict& verdict) {
  const auto cast = std::find_if(evidence.pool_reads.begin(), evidence.pool_reads.end(),
                                 [](const PoolRead& read) { return !read.copies; });
  if (cast == evidence.pool_reads.end()) return;
  const PoolRead largest = *cast;
  const std::vector<TensorVerdict> table = hold_against_model(evidence, largest);
  Suspect suspect = accuse(evidence, largest, table);
  const std::span<const TensorVerdict> tensors(table);
  const std::size_t usual = usual_suspects(table);
  rule_out_tensors(evidence, largest, tensors.first(usual), verdict);
  rule_out_other_copies(evidence, largest, verdict);
  rule_out_owners(evidence, suspect, verdict);
  rule_out_tensors(evidence, largest, tensors.subspan(usual), verdict);
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kWholePoolCast{
    {"whole-pool-cast",
     "a cast kernel, once per layer and step, over a tensor of the size of the KV pool",
     "kernel names and grids; shapes, --model and --kv-dtype make it certain",
     "the kernel's time does not follow the size of the pool"},
    examine};

}  // namespace culprit::verdict
