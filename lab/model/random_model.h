// A random model that behaves like one: hidden states neither vanish nor blow up, attention and
// routers choose, next-token distributions are neither flat nor one-hot. Its values follow from seed
// and tensor name alone, whatever the scheme of its weights, the container, the rank or the threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/model/config.h"
#include "lab/model/encode.h"
#include "lab/model/share.h"
#include "lab/model/weights.h"

namespace culprit::lab {

// What the weights are kept in. Norms stay F32, and a router is F32 in GGUF, else BF16 (F32 in kF32).
enum class Scheme : std::uint8_t {
  kF32,
  kBf16,
  kFp8,    // attention and MLPs E4M3 in blocks of 128 x 128, the rest BF16, as DeepSeek-V3
  kNvfp4,  // MLPs and experts NVFP4, the rest BF16, as nvidia/GLM-5-NVFP4
  kMxfp4,  // the same with MXFP4
  kQ8_0,
  kQ6_K,
  kQ4_K,  // with a head of Q6_K; these three Q8_0 where a row is no multiple of 256
};
std::string_view scheme_name(Scheme scheme);  // "bf16", "nvfp4", "q4_k"
Result<Scheme> scheme_named(std::string_view name);
std::vector<std::string> scheme_names();

struct RandomModel {
  ModelConfig config;
  Scheme scheme = Scheme::kBf16;
  std::uint64_t seed = 0;
};

// The tensors of a random model, as whoever writes or fills them asks for them.
Format format_of(Scheme scheme, const Slot& slot, Naming naming);
// A part of the slot's tensor. kGguf: with rows in the order that llama.cpp wants, and whole.
LevelMatrix levels_of(const RandomModel& model, const Slot& slot, const Share& part);
std::vector<float> vector_of(const RandomModel& model, const Slot& slot);
// kNvfp4: the scale of its activations, as if calibrated: the largest of them / (6 x 448).
float input_scale_of(const Slot& slot);

// The model, or one rank's share, in memory of its own (huge pages where there are some). Filled by
// `threads` threads; 5 GB of NVFP4 take seconds.
struct FreeWeights {
  std::int64_t bytes = 0;
  void operator()(std::byte* block) const;
};
struct RandomWeights {
  Weights weights;
  std::unique_ptr<std::byte, FreeWeights> block;  // what they point into
};
Result<RandomWeights> random_weights(const RandomModel& model, Shard shard = {}, int threads = 2);

}  // namespace culprit::lab
