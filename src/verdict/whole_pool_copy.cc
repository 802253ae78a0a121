// whole-pool-copy: the KV pool is sliced, updated and put together again, so that each layer copies
// all of it in every step. Public case: tenstorrent/tt-xla#4197.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::PoolRead;

constexpr double kLeastShare = 0.01;

void examine(Evidence& evidence, Verdict& verdict) {
  std::vector<std::size_t> kernels;
  double calls = 0, share = 0;
  const PoolRead* largest = nullptr;
  for (const PoolRead& read : evidence.pool_reads) {
    if (!read.copies) continue;
    if (largest == nullptr) largest = &read;
    kernels.insert(kernels.end(), read.kernels.begin(), read.kernels.end());
    calls += read.calls_per_step;
  }
  for (const std::size_t kernel : kernels) share += evidence.kernels[kernel].share;
  if (largest == nullptr || share < kLeastShare) return;
  const PoolRead read = *largest;
  Suspect suspect = accuse_kernels(evidence, "whole-pool-copy", kernels);
  const bool told = known::is_stated_pool(read.rows, evidence.known.deployment).value_or(false);
  suspect.confidence = told              ? Confidence::kCertain
                       : read.layers > 0 ? Confidence::kLikely
                                         : Confidence::kPossible;
  const std::string where =
      read.layers > 0
          ? fmt::format("{} times in each of {} layers",
                        text::amount(calls / static_cast<double>(read.layers)), read.layers)
          : fmt::format("{} times a step", text::amount(calls));
  suspect.claim = fmt::format(
      "The whole KV cache ({} slots x {} values) is copied {}, every step, however little of it "
      "changed{}",
      text::count(read.rows), read.row, where,
      told ? "; the server states as many pool tokens" : "");
  suspect.tensor = TensorMatch{"kv_pool", read.shape, {}, read.elements, read.match};
  const known::Dtype type = evidence.kernels[read.kernels.front()].dtype_in;
  if (type != known::Dtype::kUnknown) suspect.tensor->dtype = known::dtype_name(type);
  set_cost(evidence,
           {scaled(evidence, groups_of(evidence, kernels), 0),
            {known::Owner::kCopy, known::Owner::kMemcpy}},
           suspect);
  suspect.facts.push_back(
      evidence.add("kv_pool.rows", static_cast<double>(read.rows), "slot",
                   fmt::format("elements / {} (row from {})", read.row, read.row_from),
                   own_query("kv_pool.rows")));
  suspect.disproved_if = "the copies take as long with a pool of half the size";
  suspect.fix = "write the new entries in place (index_copy_, a scatter into the slots)";
  suspect.alternatives = {"let the compiler alias input and output of the cache (donated buffers)",
                          "a paged cache: attention reads pages where they lie"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kWholePoolCopy{
    {"whole-pool-copy",
     "copies within one type, in every layer, of a tensor as large as the KV pool",
     "shapes, or --model with --pool-tokens or --server-info, which make it certain",
     "the copies' time does not follow the size of the pool"},
    examine};

}  // namespace culprit::verdict
