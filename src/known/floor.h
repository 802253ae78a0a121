// Floor: the lowest time in which a GPU can do one decode step of a model, by component. A bound of
// the hardware's peaks, never a forecast: what is left out only makes it lower.
//
// Every matrix of the model is one operation, and takes max(bytes / memory bandwidth, operations /
// arithmetic peak of its type); operations follow one another. Counted per GPU and step:
//   weights       each tensor of tensors() that a step reads, once; the experts that are hit; of the
//                 embedding one row per token. FP4 with its scales (9/16 byte a weight).
//   experts hit   E (1 - (1 - k/E)^T) of E for T tokens: routing without a preference. An
//                 expectation, not a bound: tokens that are alike hit fewer, k at the least.
//   attention     MLA: 2 T n (row + rank) s operations; grouped heads: 4 T n d s. Reads s rows of the
//                 cache per request and layer, at most index_topk with a sparse indexer or the window
//                 of a sliding layer; MLA's cache is held, and read, whole by every GPU.
//   indexer       2 T H D s operations; reads D bytes and one FP32 scale per token of the context
//   all-reduce    two per layer and one behind the embedding, T x hidden of the model's type each:
//                 the faster of one-shot, a + (n - 1) M / link, and two-shot, 2 a + 2 (n - 1)/n M /
//                 link. a = 4 us: the fastest small all-reduce on record (4 KB between 4 GPUs by
//                 peer memory); models of others take 5 us (GenZ) to 10 us (calculon). With data-
//                 parallel attention each token goes to the GPUs of its experts and back instead.
// Left out: norms, biases and FP8 block scales (under 0.1 %), activations (they fit the cache), the
// draft model, sampling, the host. Sources: aiconfigurator's GEMM, MLA, DSA and MoE operators; SGLang
// custom_all_reduce.py; haohervchb/sglang-V100#2 for a.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "known/gpus.h"
#include "known/models.h"

namespace culprit::known {

enum class Component : std::uint8_t {
  kAttention,
  kIndexer,
  kDenseMlp,
  kExperts,
  kSharedExperts,
  kRouter,
  kEmbedding,
  kLmHead,
  kKvCache,
  kIndexCache,
  kCommBytes,
  kCommLatency,
};
inline constexpr int kComponentCount = static_cast<int>(Component::kCommLatency) + 1;
std::string_view component_name(Component);  // "attention weights"
constexpr bool is_weights(Component c) { return c <= Component::kLmHead; }

enum class FloorBound : std::uint8_t { kMemory, kCompute, kLink, kLatency };
std::string_view bound_name(FloorBound);

struct FloorPart {
  Component component = Component::kAttention;
  Nanos ns = 0;
  Nanos least = 0;   // were all tokens to go to the same experts; of the other components: ns
  double bytes = 0;  // read from memory, or received over the link; of one GPU
  double flops = 0;  // multiply and add count two
  FloorBound bound = FloorBound::kMemory;
  std::string how;  // what was counted: "8 of 256 experts x 75 layers"
};

struct FloorCase {
  Model model;
  Deployment deployment;  // batch: tokens of a step over all GPUs; 1 where not given
  Gpu gpu;
  std::optional<std::int64_t> context;  // tokens per request, all alike; none: no cache is read
};

struct Floor {
  std::vector<FloorPart> parts;      // in the order of Component; none that is empty
  Nanos step = 0;                    // sum of the parts
  double weight_bytes = 0;           // read by one GPU in a step, without embedding rows
  double weight_bytes_once = 0;      // the same with the whole model on one GPU: nothing replicated
  double held_bytes = 0;             // weights in the memory of one GPU
  std::optional<double> pool_bytes;  // of the KV pool, where its size is known
  Dtype kv_dtype = Dtype::kUnknown;
  std::vector<std::string> notes;  // what the figures leave out or rest on, a sentence each
};

// kUsage where tp, ep or attention_dp do not divide the model or one another: no engine runs that.
Status check_deployment(const Model& model, const Deployment& deployment);
// Errors: those of check_deployment; kUsage for a GPU whose bandwidth the table lacks.
Result<Floor> floor_of(const FloorCase& given);

}  // namespace culprit::known
