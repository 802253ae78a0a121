// low-occupancy and single-block: a kernel of many us on far fewer blocks than the device has
// multiprocessors. Public cases: sgl-project/sglang#27786 (too few KV splits at long context).
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

constexpr double kLeastShare = 0.03;
constexpr double kNearRoof = 0.6;       // of the memory's
constexpr double kNearRoofGemm = 0.35;  // few rows and few blocks reach half of it at best
constexpr double kFewBlocks = 0.6;      // of the multiprocessors
constexpr Nanos kLongKernel = 15'000;   // shorter ones are bound by latency anyway

// Bytes one attention call must read: the live keys and values of a layer.
std::optional<double> live_bytes(const Evidence& evidence, Owner kind) {
  const evidence::Knowledge& known = evidence.known;
  if (kind != Owner::kAttention || !known.model || !known.deployment.active_tokens) {
    return std::nullopt;
  }
  const std::int64_t row = known::kv_row_elements(*known.model, known.deployment);
  const known::Dtype type =
      known.deployment.kv_dtype.value_or(known.model->kv_dtype.value_or(known.model->weight_dtype));
  const int tensors = known.model->is_mla() ? 1 : 2;
  if (row <= 0 || known::bits(type) == 0) return std::nullopt;
  return static_cast<double>(*known.deployment.active_tokens * row * tensors) * known::bits(type) /
         8;
}

struct Starved {
  std::size_t kernel = 0;
  std::int64_t blocks = 0, sms = 0;
  std::optional<double> bytes;    // that a call must move
  double faster = 0;              // time that a full device would take, as a share of now
  std::optional<double> of_roof;  // bytes / time / peak
};

std::optional<Starved> look_at(const Evidence& evidence, std::size_t index) {
  const KernelFigures& kernel = evidence.kernels[index];
  const run::Group& group = evidence.run->groups[kernel.group.index];
  const std::int64_t sms = evidence.run->gpu && evidence.run->properties.sms == 0
                               ? evidence.run->gpu->gpu.sms
                               : evidence.run->properties.sms;
  const std::int64_t blocks = group.blocks();
  // Communication takes few blocks by design.
  const bool suspicious = group.device_kind == store::DeviceKind::kKernel && sms > 0 &&
                          blocks > 0 && !known::is_comm(group.kind) &&
                          kernel.share >= kLeastShare && kernel.avg_ns >= kLongKernel &&
                          static_cast<double>(blocks) < kFewBlocks * static_cast<double>(sms);
  if (!suspicious) return std::nullopt;
  Starved starved{index, blocks, sms, live_bytes(evidence, group.kind), 0, {}};
  if (!starved.bytes && kernel.bytes) starved.bytes = static_cast<double>(*kernel.bytes);
  starved.faster = static_cast<double>(blocks) / static_cast<double>(sms);
  if (starved.bytes && evidence.peak.gbps > 0) {
    const double roof = *starved.bytes / evidence.peak.gbps / static_cast<double>(kernel.avg_ns);
    if (roof <= 1) starved.of_roof = starved.faster = roof;
  }
  // A matrix multiplication of few rows keeps the memory busy from few blocks: only its bytes tell.
  const bool matrix = group.kind == Owner::kGemm || group.kind == Owner::kMoeGemm;
  if (matrix && !starved.of_roof) return std::nullopt;
  if (starved.of_roof.value_or(0) > (matrix ? kNearRoofGemm : kNearRoof)) return std::nullopt;
  return starved;
}

void accuse(Evidence& evidence, const Starved& starved, Verdict& verdict) {
  const KernelFigures kernel = evidence.kernels[starved.kernel];
  const run::Group& group = evidence.run->groups[kernel.group.index];
  const bool attention = group.kind == Owner::kAttention;
  const std::array kernels{starved.kernel};
  Suspect suspect =
      accuse_kernels(evidence, starved.blocks == 1 ? "single-block" : "low-occupancy", kernels);
  suspect.confidence = starved.of_roof ? Confidence::kCertain : Confidence::kLikely;
  suspect.claim = fmt::format(
      "{} runs {} {} on {} multiprocessors, {} a call{}",
      attention ? "Attention" : group.info.short_name, text::count(starved.blocks),
      starved.blocks == 1 ? "block" : "blocks", starved.sms, text::duration(kernel.avg_ns, true),
      starved.of_roof ? fmt::format(": {} of the memory roof", text::percent(*starved.of_roof))
                      : "");
  set_cost(evidence, {scaled(evidence, groups_of(evidence, kernels), starved.faster), {}}, suspect);
  suspect.facts.push_back(evidence.add(
      "occupancy.blocks", static_cast<double>(starved.blocks), "block", "grid x * y * z",
      evidence::sql_query(
          fmt::format("SELECT blocks FROM kernels WHERE kernel = {}", starved.kernel))));
  if (starved.of_roof) {
    suspect.facts.push_back(evidence.add("occupancy.of_roof", *starved.of_roof, "1",
                                         "bytes that must move / time / peak bandwidth",
                                         own_query("occupancy.of_roof")));
  }
  suspect.disproved_if = "the time stays the same with twice the blocks";
  suspect.fix = attention
                    ? "more KV splits, so that one long request fills the device"
                    : "spread the work over more blocks (split the reduction, more rows a launch)";
  if (attention) {
    suspect.alternatives = {
        "SGLang: --triton-attention-num-kv-splits, or another --attention-backend",
        "vLLM: a backend that splits keys (FlashInfer, FlashAttention with num_splits)",
        "a larger batch fills the device as well"};
  }
  verdict.suspects.push_back(std::move(suspect));
}

void examine(Evidence& evidence, Verdict& verdict, bool single) {
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const std::optional<Starved> starved = look_at(evidence, i);
    if (starved && (starved->blocks == 1) == single) accuse(evidence, *starved, verdict);
  }
}
void examine_low(Evidence& evidence, Verdict& verdict) { examine(evidence, verdict, false); }
void examine_single(Evidence& evidence, Verdict& verdict) { examine(evidence, verdict, true); }

}  // namespace

const Judge kLowOccupancy{
    {"low-occupancy", "a long kernel on fewer blocks than the device has multiprocessors",
     "the grid and the number of multiprocessors; --model and --active-tokens make it certain",
     "the time stays with more blocks"},
    examine_low};
const Judge kSingleBlock{{"single-block", "a long kernel on a single block", "the grid",
                          "the time stays with more blocks"},
                         examine_single};

}  // namespace culprit::verdict
