// exposed-comm and comm-latency: communication that nothing hides. Small messages cost what the way
// costs, whatever their size: that is latency, cured by another all-reduce, not by another link.
// Public cases: vllm-project/vllm#56128 (fast all-reduce off without NVLink).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "evidence/ranks.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using known::Owner;

constexpr double kLeastShare = 0.05;
// One-shot all-reduces over peer memory carry messages up to this size in a few us (vLLM and SGLang
// custom all-reduce: at most 8 MB, one-shot below 512 kB); beyond, bandwidth counts.
constexpr double kSmallMessage = 512'000;
constexpr Nanos kFastAllReduce = 6'000;  // of a small message, by peer memory
constexpr double kMuchSlower = 1.5;

// All communication of a step.
struct Traffic {
  std::vector<std::size_t> kernels;
  double calls = 0;               // per step
  Nanos time = 0, exposed = 0;    // per step, without waiting for other ranks where that is known
  Nanos waited = 0;               // that
  std::optional<double> message;  // bytes of a call, mean; unknown where one call lacks them
  std::int64_t ranks = 0;         // of the largest group; 0: unknown
  bool parted = false;            // waiting is known
  // The factor on the kernels' time at which transfer takes `scale` and waiting what it took.
  double kept(double scale) const {
    const double all = static_cast<double>(time + waited);
    return all > 0 ? (scale * static_cast<double>(time) + static_cast<double>(waited)) / all : 1;
  }
  Nanos average() const { return calls > 0 ? std::llround(static_cast<double>(time) / calls) : 0; }
};

// As NCCL's metadata writes it: "BFloat16", "Half", "c10::BFloat16".
known::Dtype dtype_of(std::string_view text) {
  const known::Dtype torch = known::dtype_from_torch(text);
  return torch != known::Dtype::kUnknown ? torch : known::dtype_from_config(text);
}

double message_of(const store::Collective& collective, const store::Strings& strings) {
  const std::int64_t elements = std::max(collective.in_elements, collective.out_elements);
  const known::Dtype type = dtype_of(strings.or_empty(collective.dtype));
  return elements > 0 ? static_cast<double>(elements) * known::bits(type) / 8 : 0;
}

bool worth_it(const Evidence& evidence, const Traffic& traffic) {
  return evidence.steps.mean > 0 && static_cast<double>(traffic.exposed) >=
                                        kLeastShare * static_cast<double>(evidence.steps.mean);
}

Traffic find_traffic(const Evidence& evidence) {
  const run::Run& run = *evidence.run;
  Traffic traffic;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const evidence::KernelFigures& kernel = evidence.kernels[i];
    if (run.groups[kernel.group.index].kind != Owner::kComm) continue;
    traffic.kernels.push_back(i);
    traffic.calls += kernel.calls_per_step;
    traffic.time += kernel.ns_per_step;
  }
  traffic.parted = evidence.ranks != nullptr && evidence.ranks->skew.known();
  traffic.waited = std::min(traffic.time, time_of(evidence, Owner::kCommWait));
  traffic.time -= traffic.waited;
  traffic.exposed = time_of(evidence, Owner::kComm);  // compute hides communication in the budget
  if (!worth_it(evidence, traffic)) return traffic;
  traffic.ranks = run.trace->info.world_size.value_or(0);
  for (const store::Collective& collective : run.trace->collectives) {
    traffic.ranks = std::max(traffic.ranks, collective.group_size);
  }
  double bytes = 0;
  std::int64_t calls = 0;
  for (const run::Activity& activity : run.activities) {
    if (activity.kind != Owner::kComm || activity.step < 0) continue;
    const std::uint32_t collective = run.trace->device.collective[activity.row.index];
    const double message =
        collective > 0 ? message_of(run.trace->collectives[collective - 1], run.trace->strings) : 0;
    if (message <= 0) return traffic;
    bytes += message;
    ++calls;
  }
  if (calls > 0) traffic.message = bytes / static_cast<double>(calls);
  return traffic;
}

// What a small all-reduce can take here: peer memory over NVLink or xGMI, or between a few GPUs on one
// PCIe switch; else a ring of n ranks passes 2 (n - 1) hops, 3.4 us each over PCIe (47 us for 8 boards
// without a link in the founding case).
Nanos reachable(const Evidence& evidence, const Traffic& traffic) {
  constexpr std::int64_t kFewRanks = 4;
  constexpr Nanos kHop = 3'400;
  const std::optional<known::GpuMatch>& gpu = evidence.run->gpu;
  const bool linked = !gpu || gpu->gpu.link_gbps > 0;
  if (linked || (traffic.ranks > 0 && traffic.ranks <= kFewRanks)) return kFastAllReduce;
  return traffic.ranks > 0 ? 2 * (traffic.ranks - 1) * kHop : traffic.average();
}

bool is_small(const Traffic& traffic) {
  // Without sizes: many short calls are what small messages look like.
  constexpr Nanos kShort = 60'000;
  return traffic.message ? *traffic.message <= kSmallMessage : traffic.average() <= kShort;
}

std::string message_text(const Traffic& traffic) {
  if (!traffic.message) return "messages of unknown size";
  const double gbps = *traffic.message / static_cast<double>(traffic.average());
  return fmt::format("{} each, {} GB/s", text::bytes(std::llround(*traffic.message)),
                     text::number(gbps));
}

void state_messages(Evidence& evidence, const Traffic& traffic, Suspect& suspect) {
  suspect.facts.push_back(evidence.add(
      "comm.exposed_ns_per_step", static_cast<double>(traffic.exposed), "ns",
      "time per step in which only communication ran", own_query("comm.exposed_ns_per_step")));
  if (!traffic.message) return;
  suspect.facts.push_back(evidence.add("comm.bytes_per_call", *traffic.message, "byte",
                                       "elements x bytes of the recorded collectives, mean",
                                       own_query("comm.bytes_per_call")));
}

// The kernels, without what they wait for other ranks.
Suspect accuse_transfer(Evidence& evidence, std::string_view id, const Traffic& traffic) {
  Suspect suspect = accuse_kernels(evidence, id, traffic.kernels);
  if (traffic.parted) {
    suspect.ns_per_step = traffic.time;
    suspect.exposed_ns_per_step = std::min(suspect.exposed_ns_per_step, traffic.exposed);
  }
  return suspect;
}

void accuse_latency(Evidence& evidence, const Traffic& traffic, Nanos fast, Verdict& verdict) {
  Suspect suspect = accuse_transfer(evidence, "comm-latency", traffic);
  suspect.confidence = traffic.message ? Confidence::kLikely : Confidence::kPossible;
  suspect.claim = fmt::format(
      "{} small collectives a step, {} each and nothing hides them ({}): the way costs, not the "
      "data",
      text::count(std::llround(traffic.calls)), text::duration(traffic.average(), true),
      message_text(traffic));
  const double faster = static_cast<double>(fast) / static_cast<double>(traffic.average());
  set_cost(evidence,
           {scaled(evidence, groups_of(evidence, traffic.kernels), traffic.kept(faster)),
            {Owner::kComm}},
           suspect);
  state_messages(evidence, traffic, suspect);
  suspect.disproved_if =
      "the calls are as short as their fastest in some steps (then a late rank is waited for), or "
      "the "
      "time follows the batch";
  suspect.fix = fmt::format(
      "a one-shot all-reduce over peer memory (custom all-reduce, symmetric memory), about {} a "
      "call",
      text::duration(fast, true));
  suspect.alternatives = {
      "SGLang: leave out --disable-custom-all-reduce; --enable-symm-mem where the driver has it",
      "vLLM: leave out --disable-custom-all-reduce; without NVLink, fewer ranks (tp) per replica",
      "fuse the all-reduce with the norm behind it (FlashInfer all-reduce fusion)"};
  verdict.suspects.push_back(std::move(suspect));
}

void examine_latency(Evidence& evidence, Verdict& verdict) {
  const Traffic traffic = find_traffic(evidence);
  const Nanos fast = reachable(evidence, traffic);
  const bool slow =
      static_cast<double>(traffic.average()) > kMuchSlower * static_cast<double>(fast);
  if (worth_it(evidence, traffic) && is_small(traffic) && slow) {
    accuse_latency(evidence, traffic, fast, verdict);
  }
}

void examine_exposed(Evidence& evidence, Verdict& verdict) {
  const Traffic traffic = find_traffic(evidence);
  // Without sizes a long call may be nothing but waiting for a late rank.
  if (!worth_it(evidence, traffic) || !traffic.message || is_small(traffic)) return;
  Suspect suspect = accuse_transfer(evidence, "exposed-comm", traffic);
  // One rank alone cannot tell transfer from waiting.
  suspect.confidence = traffic.parted ? Confidence::kCertain : Confidence::kLikely;
  suspect.claim = fmt::format("Communication that no compute hides: {} calls a step, {} each ({})",
                              text::count(std::llround(traffic.calls)),
                              text::duration(traffic.average(), true), message_text(traffic));
  set_cost(
      evidence,
      {scaled(evidence, groups_of(evidence, traffic.kernels), traffic.kept(0)), {Owner::kComm}},
      suspect);
  state_messages(evidence, traffic, suspect);
  suspect.disproved_if =
      traffic.parted
          ? "the step stays as it is with twice the bandwidth between the ranks"
          : "the other ranks' traces show that they came late: then it is waiting, not transfer";
  suspect.fix = "overlap it with compute (two-batch overlap, chunked all-reduce with the GEMM)";
  suspect.alternatives = {"fewer ranks per layer (a smaller tp with data-parallel attention)",
                          "a faster link between the ranks"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kExposedComm{
    {"exposed-comm", "communication kernels in whose time nothing else runs",
     "kernel names and the sizes of the collectives", "other ranks came late: then it is waiting"},
    examine_exposed};
const Judge kCommLatency{
    {"comm-latency", "many exposed collectives of small messages, each far above 6 us",
     "kernel names; sizes of the collectives make it likely", "the time follows the message size"},
    examine_latency};

}  // namespace culprit::verdict
