// Configs of real models as their files state them; presets against published parameter counts; what
// cannot be run is refused by name.
#include "lab/model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/model/slots.h"

namespace culprit::lab {
namespace {

using Json = nlohmann::json;

constexpr const char* kGlm5 = R"({
  "architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa",
  "attention_bias": false, "dtype": "bfloat16", "eos_token_id": [154820, 154827, 154829], "ep_size": 1,
  "first_k_dense_replace": 3, "head_dim": 64, "hidden_act": "silu", "hidden_size": 6144,
  "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "indexer_rope_interleave": true,
  "initializer_range": 0.02, "intermediate_size": 12288, "kv_lora_rank": 512,
  "max_position_embeddings": 202752, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 64,
  "num_experts_per_tok": 8, "num_hidden_layers": 78, "num_key_value_heads": 64,
  "num_nextn_predict_layers": 1, "q_lora_rank": 2048, "qk_head_dim": 256, "qk_nope_head_dim": 192,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05, "rope_interleave": true,
  "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}, "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
  "v_head_dim": 256, "vocab_size": 154880})";
constexpr const char* kDeepseekV3 = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "bos_token_id": 0,
  "eos_token_id": 1, "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "quantization_config": {"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
  "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
    "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
  "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128,
  "vocab_size": 129280})";
constexpr const char* kQwen3 = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1,
  "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
  "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
  "use_sliding_window": false, "vocab_size": 151936})";
constexpr const char* kLlama = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "eos_token_id": 128001,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256})";

// Read, or the test has failed; a changed field, or one taken out.
ModelConfig read(const std::string& json) {
  auto config = config_from_json(json, "config.json");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().what);
  return config.ok() ? *config : ModelConfig{};
}
std::string with(const char* json, const char* key, const Json& value) {
  Json changed = Json::parse(json);
  changed[key] = value;
  return changed.dump();
}
std::string without(const char* json, const char* key) {
  Json changed = Json::parse(json);
  changed.erase(key);
  return changed.dump();
}

TEST(Config, ReadsWhatTheFilesState) {
  // A preset written out holds every field, so equal texts mean equal configs.
  EXPECT_EQ(config_to_json(read(kGlm5)), config_to_json(*preset("glm-5")));
  EXPECT_EQ(config_to_json(read(kDeepseekV3)), config_to_json(*preset("deepseek-v3")));
  EXPECT_EQ(config_to_json(read(kQwen3)), config_to_json(*preset("qwen3-30b-a3b")));
  EXPECT_EQ(config_to_json(read(kLlama)), config_to_json(*preset("llama-3.1-8b")));
}

TEST(Config, FieldsOfTheFamilies) {
  const ModelConfig glm = read(kGlm5);
  EXPECT_EQ(glm.family, Family::kMla);
  EXPECT_EQ(glm.rope, RopeStyle::kInterleaved);
  EXPECT_EQ(glm.indexer.rope, RopeStyle::kInterleaved);
  EXPECT_EQ(glm.rope_theta, 1e6);
  EXPECT_EQ(glm.latent_dim(), 576);
  EXPECT_EQ(glm.qk_dim(), 256);
  EXPECT_EQ(glm.eos.size(), 3U);
  EXPECT_TRUE(glm.router.biased && glm.router.normalized);
  EXPECT_FALSE(glm.is_moe(2));
  EXPECT_TRUE(glm.is_moe(3));
  EXPECT_DOUBLE_EQ(glm.softmax_scale(), 1.0 / 16);
  const ModelConfig v3 = read(kDeepseekV3);
  EXPECT_EQ(v3.router.groups, 8);
  EXPECT_EQ(v3.router.groups_kept, 4);
  EXPECT_EQ(v3.yarn->factor, 40);
  const double magnitude = 0.1 * std::log(40.0) + 1;
  EXPECT_DOUBLE_EQ(v3.softmax_scale(), magnitude * magnitude / std::sqrt(192.0));
  const ModelConfig qwen = read(kQwen3);
  EXPECT_EQ(qwen.rope, RopeStyle::kHalfSplit);
  EXPECT_TRUE(qwen.qk_norm);
  EXPECT_EQ(qwen.router.scoring, Scoring::kSoftmax);
  EXPECT_FALSE(qwen.router.biased);
  EXPECT_TRUE(qwen.is_moe(0));
  const ModelConfig llama = read(kLlama);
  EXPECT_EQ(llama.head_dim, 128);  // stated by no field
  EXPECT_FALSE(llama.qk_norm || llama.is_moe(31));
}

TEST(Config, ModelTypeStandsInForAMissingArchitecture) {
  EXPECT_EQ(read(without(kGlm5, "architectures")).architecture, "GlmMoeDsaForCausalLM");
}

TEST(Config, Kimi) {
  // Kimi-K2 names DeepSeek's architecture.
  Json json = Json::parse(config_to_json(*preset("kimi-k2")));
  json["model_type"] = "kimi_k2";
  EXPECT_EQ(config_to_json(read(json.dump())), config_to_json(*preset("kimi-k2")));
}

TEST(Config, WhatItWritesItReads) {
  for (const std::string& name : preset_names()) {
    const ModelConfig config = *preset(name);
    EXPECT_TRUE(check(config, name).ok()) << name;
    const ModelConfig again = read(config_to_json(config));
    EXPECT_EQ(config_to_json(again), config_to_json(config)) << name;
    EXPECT_EQ(again.family, config.family) << name;
    EXPECT_EQ(again.qk_norm, config.qk_norm) << name;
    EXPECT_EQ(again.rope, config.rope) << name;
    EXPECT_EQ(again.indexer.rope, config.indexer.rope) << name;
  }
}

std::int64_t parameters(const ModelConfig& config) {
  Weights weights;
  weights.config = config;
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  std::int64_t sum = 0;
  const auto add = [&](const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) sum += slot.rows * std::max<std::int64_t>(slot.cols, 1);
  };
  add(outer_slots(weights, Naming::kHf));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    add(layer_slots(weights, layer, Naming::kHf));
  return sum;
}

TEST(Presets, HaveThePublishedParameters) {
  EXPECT_EQ(parameters(*preset("glm-5")), 743'911'218'432);
  EXPECT_EQ(parameters(*preset("deepseek-v3")), 671'026'419'200);
  EXPECT_EQ(parameters(*preset("kimi-k2")), 1'026'408'232'448);
  EXPECT_EQ(parameters(*preset("qwen3-30b-a3b")), 30'532'122'624);
  EXPECT_EQ(parameters(*preset("qwen3-235b-a22b")), 235'093'634'560);
  EXPECT_EQ(parameters(*preset("llama-3.1-8b")), 8'030'261'248);
}

TEST(Presets, TinyOnesFitTheBlocks) {
  for (const std::string& name : preset_names()) {
    if (!name.starts_with("tiny-")) continue;
    Weights weights;
    weights.config = *preset(name);
    EXPECT_LT(parameters(weights.config), 10'000'000) << name;
    weights.layers.resize(static_cast<std::size_t>(weights.config.layers));
    for (std::int64_t layer = 0; layer < weights.config.layers; ++layer)
      for (const Slot& slot : layer_slots(weights, layer, Naming::kGguf))
        EXPECT_TRUE(slot.role == Role::kKeyB || slot.cols % 256 == 0) << name << " " << slot.name;
  }
}

TEST(Presets, UnknownNamesGetANearOne) {
  const auto unknown = preset("glm5");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Error::Code::kUsage);
  EXPECT_NE(unknown.error().hint.find("glm-5"), std::string::npos);
}

void expect_refused(const std::string& json, std::string_view field, Error::Code code) {
  const auto config = config_from_json(json, "config.json");
  ASSERT_FALSE(config.ok()) << field;
  EXPECT_NE(config.error().what.find(field), std::string::npos) << config.error().what;
  EXPECT_EQ(config.error().code, code) << config.error().what;
  EXPECT_TRUE(config.error().where.starts_with("config.json")) << config.error().where;
  EXPECT_FALSE(config.error().hint.empty()) << config.error().what;
}

TEST(Config, WhatTheLabDoesNotComputeIsRefused) {
  constexpr auto kUnsupported = Error::Code::kUnsupported;
  expect_refused(with(kLlama, "attention_bias", true), "attention_bias", kUnsupported);
  expect_refused(with(kLlama, "mlp_bias", true), "mlp_bias", kUnsupported);
  expect_refused(with(kLlama, "hidden_act", "gelu"), "hidden_act", kUnsupported);
  expect_refused(with(kQwen3, "use_sliding_window", true), "use_sliding_window", kUnsupported);
  expect_refused(with(kQwen3, "decoder_sparse_step", 2), "decoder_sparse_step", kUnsupported);
  expect_refused(with(kQwen3, "mlp_only_layers", {5}), "mlp_only_layers", kUnsupported);
  expect_refused(with(kGlm5, "moe_layer_freq", 2), "moe_layer_freq", kUnsupported);
  expect_refused(with(kGlm5, "scoring_func", "sqrtsoftplus"), "scoring_func", kUnsupported);
  expect_refused(with(kDeepseekV3, "topk_method", "group_limited_greedy"), "topk_method",
                 kUnsupported);
  expect_refused(with(kGlm5, "index_topk_freq", 4), "index_topk_freq", kUnsupported);
  expect_refused(with(kGlm5, "indexer_types", {"full", "shared"}), "indexer_types", kUnsupported);
  expect_refused(with(kLlama, "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}), "llama3",
                 kUnsupported);
  expect_refused(with(kLlama, "architectures", {"LlamaForCausalLMs"}), "LlamaForCausalLMs",
                 kUnsupported);
  EXPECT_EQ(read(with(kQwen3, "mlp_only_layers", {0, 1})).dense_layers, 2);
}

TEST(Config, UnknownArchitecturesGetANearName) {
  const auto config = config_from_json(with(kLlama, "architectures", {"Llama2ForCausalLM"}), "c");
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().hint.find("LlamaForCausalLM"), std::string::npos);
}

TEST(Config, BrokenFiles) {
  constexpr auto kBad = Error::Code::kBadInput;
  expect_refused("{", "JSON", kBad);
  expect_refused("[]", "object", kBad);
  expect_refused("{}", "architectures", kBad);
  expect_refused(without(kGlm5, "hidden_size"), "hidden_size", kBad);
  expect_refused(with(kGlm5, "hidden_size", "6144"), "hidden_size", kBad);
  expect_refused(with(kGlm5, "hidden_size", -1), "hidden_size", kBad);
  expect_refused(with(kGlm5, "hidden_size", 1e300), "hidden_size", kBad);
  expect_refused(with(kGlm5, "rms_norm_eps", "small"), "rms_norm_eps", kBad);
  expect_refused(with(kGlm5, "norm_topk_prob", 1), "norm_topk_prob", kBad);
  expect_refused(with(kGlm5, "scoring_func", 1), "scoring_func", kBad);
  expect_refused(with(kGlm5, "eos_token_id", "end"), "eos_token_id", kBad);
  expect_refused(with(kDeepseekV3, "rope_scaling", {{"type", "yarn"}, {"factor", "x"}}), "factor",
                 kBad);
  const auto cut = config_from_json("{\"hidden_size\": ", "config.json");
  EXPECT_EQ(cut.error().where, "config.json: byte 17");
}

TEST(Config, ExtentsHaveBounds) {
  constexpr auto kBad = Error::Code::kBadInput;
  for (const char* field :
       {"hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings",
        "num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "intermediate_size", "moe_intermediate_size", "n_routed_experts", "num_experts_per_tok",
        "n_group", "topk_group", "index_head_dim", "index_topk"}) {
    expect_refused(with(kGlm5, field, std::int64_t{1} << 36), field, kBad);
    if (field != std::string_view("n_routed_experts"))
      expect_refused(with(kGlm5, field, 0), field, kBad);
  }
  expect_refused(with(kGlm5, "first_k_dense_replace", 79), "first_k_dense_replace", kBad);
  expect_refused(with(kGlm5, "n_shared_experts", 65), "n_shared_experts", kBad);
  expect_refused(with(kGlm5, "qk_rope_head_dim", 63), "qk_rope_head_dim", kBad);
  expect_refused(with(kGlm5, "index_head_dim", 32), "index_head_dim", kBad);
  expect_refused(with(kGlm5, "q_lora_rank", nullptr), "q_lora_rank", kBad);
  expect_refused(with(kGlm5, "eos_token_id", 154880), "eos_token_id", kBad);
  expect_refused(with(kGlm5, "rms_norm_eps", 0), "rms_norm_eps", kBad);
  expect_refused(with(kGlm5, "routed_scaling_factor", 0), "routed_scaling_factor", kBad);
  expect_refused(with(kDeepseekV3, "n_group", 7), "n_group", kBad);
  expect_refused(with(kDeepseekV3, "n_group", 256), "groups of one", kBad);
  expect_refused(with(kDeepseekV3, "num_experts_per_tok", 129), "num_experts_per_tok", kBad);
  expect_refused(with(kLlama, "num_key_value_heads", 5), "num_key_value_heads", kBad);
  expect_refused(with(kLlama, "head_dim", 127), "head_dim", kBad);
  expect_refused(with(kDeepseekV3, "rope_scaling", {{"type", "yarn"}, {"factor", 0.5}}), "factor",
                 kBad);
  ModelConfig config = *preset("llama-3.1-8b");
  config.indexer.heads = 1;
  EXPECT_FALSE(check(config, "here").ok());
}

}  // namespace
}  // namespace culprit::lab
