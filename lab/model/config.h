// A model's shape: what config.json or a GGUF's keys state, in one form for every family that the lab
// runs. Names are those of the Hugging Face configs. Source of the fields: facts on models, section 3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::lab {

enum class Family : std::uint8_t {
  kMla,  // DeepSeek-V2/V3/V3.2, Kimi-K2, GLM-5: latent KV, mixture of experts, maybe an indexer
  kGqa,  // Llama, Qwen3-MoE: grouped queries, dense or mixture of experts
};
enum class RopeStyle : std::uint8_t { kInterleaved, kHalfSplit };
enum class Scoring : std::uint8_t { kSigmoid, kSoftmax };

struct Yarn {  // stretched rotary positions; source: DeepSeek-V3 modeling, `yarn_get_mscale`
  double factor = 1, original_positions = 4096, beta_fast = 32, beta_slow = 1;
  double mscale = 1, mscale_all_dim = 0;
};

struct Router {
  std::int64_t experts = 0, per_token = 0, shared = 0;  // experts 0: every layer is dense
  std::int64_t groups = 1, groups_kept = 1;
  Scoring scoring = Scoring::kSoftmax;
  bool biased = false;      // choice by score + e_score_correction_bias, weight by score alone
  bool normalized = false;  // weights of the chosen add up to 1 before `scale`
  double scale = 1;         // routed_scaling_factor
};

struct Indexer {  // DSA; heads 0: none
  std::int64_t heads = 0, head_dim = 0, top_k = 0;
  RopeStyle rope = RopeStyle::kHalfSplit;
};

struct ModelConfig {
  std::string architecture;  // "GlmMoeDsaForCausalLM"; what config.json's `architectures` says
  Family family = Family::kGqa;
  std::int64_t hidden = 0, layers = 0, vocab = 0, max_positions = 0;
  std::int64_t heads = 0, kv_heads = 0;
  // kMla: of the latent row; kGqa: only head_dim, and whether each head is normalised (Qwen3).
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
  std::int64_t head_dim = 0;
  bool qk_norm = false;
  std::int64_t intermediate = 0, moe_intermediate = 0, dense_layers = 0;  // the first dense_layers
  Router router;
  Indexer indexer;
  double rms_eps = 1e-5, rope_theta = 1e4;
  RopeStyle rope = RopeStyle::kHalfSplit;
  std::optional<Yarn> yarn;
  bool tied_embeddings = false;
  std::vector<std::int64_t> eos;

  bool is_moe(std::int64_t layer) const { return router.experts > 0 && layer >= dense_layers; }
  std::int64_t latent_dim() const { return kv_lora_rank + rope_dim; }  // kMla: one cached row
  std::int64_t qk_dim() const { return family == Family::kMla ? nope_dim + rope_dim : head_dim; }
  double softmax_scale() const;  // of attention scores, yarn's factor included
};

// Every extent positive and small enough that products stay far from overflow, heads and groups
// divide; the first field that is not is named.
Status check(const ModelConfig& config, const std::string& where);

Result<ModelConfig> config_from_json(std::string_view json, const std::string& where);
std::string config_to_json(const ModelConfig& config);  // what config_from_json reads

// Shapes of real models by the names that people use ("glm-5", "deepseek-v3", "deepseek-v3.2",
// "kimi-k2", "qwen3-30b-a3b", "qwen3-235b-a22b", "llama-3.1-8b"), and "tiny-..." ones of each family.
Result<ModelConfig> preset(std::string_view name);
std::vector<std::string> preset_names();

// A config made smaller: fewer layers (the first `dense_layers` of them without experts), fewer
// experts, widths and vocabulary times `scale`. Unset: as it is. Widths become multiples of 256, heads
// and groups still divide.
struct Resize {
  std::optional<std::int64_t> layers = {}, dense_layers = {}, experts = {};
  double scale = 1;
};
Result<ModelConfig> resized(ModelConfig config, const Resize& resize);

}  // namespace culprit::lab
