#include "forge/configs.h"

#include <fmt/format.h>

namespace culprit::forge {
namespace {

constexpr std::string_view kGlm5Config = R"({
  "architectures": [
    "GlmMoeDsaForCausalLM"
  ],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "dtype": "bfloat16",
  "eos_token_id": [
    154820,
    154827,
    154829
  ],
  "ep_size": 1,
  "first_k_dense_replace": 3,
  "head_dim": 64,
  "hidden_act": "silu",
  "hidden_size": 6144,
  "index_head_dim": 128,
  "index_n_heads": 32,
  "index_topk": 2048,
  "indexer_rope_interleave": true,
  "initializer_range": 0.02,
  "intermediate_size": 12288,
  "kv_lora_rank": 512,
  "max_position_embeddings": 202752,
  "model_type": "glm_moe_dsa",
  "moe_intermediate_size": 2048,
  "moe_layer_freq": 1,
  "n_group": 1,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "norm_topk_prob": true,
  "num_attention_heads": 64,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 78,
  "num_key_value_heads": 64,
  "num_nextn_predict_layers": 1,
  "pad_token_id": 154820,
  "pretraining_tp": 1,
  "q_lora_rank": 2048,
  "qk_head_dim": 256,
  "qk_nope_head_dim": 192,
  "qk_rope_head_dim": 64,
  "rms_norm_eps": 1e-05,
  "rope_interleave": true,
  "rope_parameters": {
    "rope_theta": 1000000,
    "rope_type": "default"
  },
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "tie_word_embeddings": false,
  "topk_group": 1,
  "topk_method": "noaux_tc",
  "transformers_version": "5.0.2.dev0",
  "use_cache": true,
  "v_head_dim": 256,
  "vocab_size": 154880
}
)";

constexpr std::string_view kLlamaConfig = R"({
  "architectures": [
    "LlamaForCausalLM"
  ],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "eos_token_id": [
    128001,
    128008,
    128009
  ],
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.42.3",
  "use_cache": true,
  "vocab_size": 128256
}
)";

// ModelOpt names every module that it leaves in bf16.
std::string glm5_quantization() {
  constexpr std::string_view kKept[] = {"indexer*", "kv_a_proj_with_mqa", "kv_b_proj",
                                        "o_proj",   "q_a_proj",           "q_b_proj"};
  std::string excluded = "      \"lm_head\",\n";
  for (int layer = 0; layer < 78; ++layer) {
    for (const std::string_view module : kKept) {
      excluded += fmt::format("      \"model.layers.{}.self_attn.{}\",\n", layer, module);
    }
  }
  return fmt::format(R"({{
  "producer": {{
    "name": "modelopt",
    "version": "0.42.0rc1.dev18"
  }},
  "quantization": {{
    "quant_algo": "NVFP4",
    "kv_cache_quant_algo": "FP8",
    "group_size": 16,
    "exclude_modules": [
{}      "model.layers.78*"
    ]
  }}
}}
)",
                     excluded);
}

struct Server {
  std::string_view model;
  std::string_view quantization;  // JSON
  std::string_view attention;
  std::string_view kv_dtype;
  int world;
  int page;
  int tokens;
  int context;
  bool graph;
  std::string_view kv_gb;
  std::string_view weights_gb;
};

std::string server_info(const Server& server) {
  return fmt::format(
      R"({{"model_path":"{0}","tokenizer_path":"{0}","trust_remote_code":false,"context_length":{7},"dtype":"auto",)"
      R"("quantization":{1},"kv_cache_dtype":"{3}","tp_size":{4},"pp_size":1,"dp_size":1,"ep_size":1,"page_size":{5},)"
      R"("attention_backend":"{2}","mem_fraction_static":0.88,"max_running_requests":48,"chunked_prefill_size":8192,)"
      R"("disable_cuda_graph":{8},"disable_overlap_schedule":true,"disable_radix_cache":false,"speculative_algorithm":null,)"
      R"("enable_dp_attention":false,"served_model_name":"{0}","status":"ready","max_total_num_tokens":{6},)"
      R"("max_req_input_len":{9},"internal_states":[{{"last_gen_throughput":0.0,"memory_usage":{{"weight":{10},)"
      R"("kvcache":{11},"token_capacity":{6},"graph":0.0}},"effective_max_running_requests_per_dp":48}}],)"
      R"("version":"0.5.10"}})"
      "\n",
      server.model, server.quantization, server.attention, server.kv_dtype, server.world,
      server.page, server.tokens, server.context, !server.graph, server.context - 6,
      server.weights_gb, server.kv_gb);
}

}  // namespace

Configs glm5_configs(int world, bool graph) {
  const Server server{"nvidia/GLM-5-NVFP4",
                      "\"modelopt_fp4\"",
                      "flashinfer",
                      "fp8_e4m3",
                      world,
                      64,
                      495'488,
                      202'752,
                      graph,
                      "20.73",
                      "54.77"};
  return {std::string(kGlm5Config), glm5_quantization(), server_info(server)};
}

Configs llama_configs(bool graph) {
  const Server server{"meta-llama/Llama-3.1-8B-Instruct",
                      "null",
                      "flashinfer",
                      "auto",
                      1,
                      1,
                      393'216,
                      131'072,
                      graph,
                      "48.0",
                      "14.98"};
  return {std::string(kLlamaConfig), "", server_info(server)};
}

}  // namespace culprit::forge
