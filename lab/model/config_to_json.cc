#include <utility>

#include "lab/model/architecture.h"
#include "lab/model/config.h"
#include "lab/model/json.h"

namespace culprit::lab {
namespace {

Json rope_json(const ModelConfig& config) {
  if (!config.yarn) return nullptr;
  const Yarn& yarn = *config.yarn;
  return {{"type", "yarn"},
          {"factor", yarn.factor},
          {"original_max_position_embeddings", yarn.original_positions},
          {"beta_fast", yarn.beta_fast},
          {"beta_slow", yarn.beta_slow},
          {"mscale", yarn.mscale},
          {"mscale_all_dim", yarn.mscale_all_dim}};
}

void write_attention(const ModelConfig& config, nlohmann::ordered_json& json) {
  if (config.family == Family::kGqa) {
    json["head_dim"] = config.head_dim;
    return;
  }
  json["q_lora_rank"] = config.q_lora_rank > 0 ? Json(config.q_lora_rank) : Json(nullptr);
  json["kv_lora_rank"] = config.kv_lora_rank;
  json["qk_nope_head_dim"] = config.nope_dim;
  json["qk_rope_head_dim"] = config.rope_dim;
  json["v_head_dim"] = config.v_dim;
  json["rope_interleave"] = config.rope == RopeStyle::kInterleaved;
  if (config.indexer.heads == 0) return;
  json["index_n_heads"] = config.indexer.heads;
  json["index_head_dim"] = config.indexer.head_dim;
  json["index_topk"] = config.indexer.top_k;
  json["indexer_rope_interleave"] = config.indexer.rope == RopeStyle::kInterleaved;
}

void write_experts(const ModelConfig& config, nlohmann::ordered_json& json) {
  const Router& router = config.router;
  if (router.experts == 0) return;
  const bool mla = config.family == Family::kMla;
  json[mla ? "n_routed_experts" : "num_experts"] = router.experts;
  json["num_experts_per_tok"] = router.per_token;
  json["moe_intermediate_size"] = config.moe_intermediate;
  json["norm_topk_prob"] = router.normalized;
  json["scoring_func"] = router.scoring == Scoring::kSigmoid ? "sigmoid" : "softmax";
  json["topk_method"] = router.biased ? "noaux_tc" : "greedy";
  json["routed_scaling_factor"] = router.scale;
  json["n_shared_experts"] = router.shared;
  json["first_k_dense_replace"] = config.dense_layers;
  json["n_group"] = router.groups;
  json["topk_group"] = router.groups_kept;
}

}  // namespace

std::string config_to_json(const ModelConfig& config) {
  nlohmann::ordered_json json;
  json["architectures"] = {config.architecture};
  const Architecture* const architecture = architecture_named(config.architecture);
  if (architecture != nullptr) json["model_type"] = architecture->model_type;
  json["hidden_size"] = config.hidden;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.kv_heads;
  write_attention(config, json);
  json["intermediate_size"] = config.intermediate;
  write_experts(config, json);
  json["vocab_size"] = config.vocab;
  json["max_position_embeddings"] = config.max_positions;
  json["rms_norm_eps"] = config.rms_eps;
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = rope_json(config);
  json["tie_word_embeddings"] = config.tied_embeddings;
  json["eos_token_id"] = config.eos;
  json["hidden_act"] = "silu";
  json["torch_dtype"] = "bfloat16";
  return json.dump(2) + "\n";
}

}  // namespace culprit::lab
