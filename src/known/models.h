// Model: a Hugging Face config (or a row of models.csv) under a deployment, as a list of named
// tensors with shape, dtype, elements and how often one rank holds them. The detective holds a
// kernel's evidence against each of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "known/dtype.h"

namespace culprit::known {

struct Model {
  std::string name;          // "zai-org/GLM-5", or the config's _name_or_path, or its architecture
  std::string architecture;  // "GlmMoeDsaForCausalLM"
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  // MLA; 0: none.
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  std::int64_t intermediate = 0, moe_intermediate = 0;
  std::int64_t experts = 0, experts_per_token = 0, shared_experts = 0, first_dense = 0;
  std::int64_t shared_intermediate = 0;  // of all shared experts; 0: shared_experts x an expert's
  // Sparse-attention indexer; 0: none. Attention then reads at most index_topk tokens.
  std::int64_t index_heads = 0, index_head_dim = 0, index_topk = 0;
  std::optional<std::int64_t>
      index_layers;  // that score tokens of their own; none: all that attend
  // Layers that read only the last `sliding_window` tokens.
  std::int64_t sliding_window = 0, sliding_layers = 0;
  std::int64_t vocab = 0;
  bool tied_embeddings = false;  // lm_head is the embedding table
  // Layers by kind where a model mixes them; none: every layer attends, and the first `first_dense`
  // are dense, the others MoE (if there are experts).
  std::optional<std::int64_t> attention_layers, dense_layers, moe_layers;
  Dtype weight_dtype = Dtype::kBf16;  // the config's torch_dtype
  std::string quant_algo;  // "NVFP4", "FP8", ""; from hf_quant_config.json or quantization_config
  std::int64_t quant_group = 0;          // weights under one scale; 0: the algorithm's usual
  std::vector<std::string> unquantized;  // module globs that stay in weight_dtype
  std::vector<std::string> unverified;   // columns of its row that no cited source backs
  std::string table;                     // the user's file its row is in; empty: built in, or none
  std::optional<Dtype> kv_dtype;         // only if a file states it (kv_cache_quant_algo)

  bool is_mla() const { return kv_lora_rank > 0; }
  // Attention whose K and V are neither MLA's nor grouped heads (DeepSeek-V4): no tensor list has them.
  bool attention_unknown() const { return !is_mla() && (q_lora_rank > 0 || kv_heads == 0); }
  std::int64_t expert_size() const {
    return moe_intermediate > 0 ? moe_intermediate : intermediate;
  }
  std::int64_t shared_size() const {
    return shared_intermediate > 0 ? shared_intermediate : shared_experts * expert_size();
  }
  std::int64_t index_count() const {
    return index_heads > 0 ? index_layers.value_or(attention_count()) : 0;
  }
  std::int64_t attention_count() const { return attention_layers.value_or(layers); }
  std::int64_t moe_count() const {
    return moe_layers.value_or(experts > 0 && layers > first_dense ? layers - first_dense : 0);
  }
  std::int64_t dense_count() const {
    return dense_layers.value_or(experts > 0 ? first_dense : layers);
  }
};

struct Deployment {
  std::int64_t tp = 1, ep = 1;
  std::int64_t attention_dp = 1;            // attention is sharded over tp / attention_dp ranks
  std::optional<Dtype> kv_dtype;            // flag or server info; else the model's, else unknown
  std::optional<std::int64_t> pool_tokens;  // max_total_num_tokens
  std::optional<std::int64_t> page_size;
  std::optional<std::int64_t> active_tokens;  // live tokens over all requests
  std::optional<std::int64_t> batch;          // rows of a decode step
};

// What a tensor is for; the components of a step's floor (known/floor.h).
enum class Part : std::uint8_t {
  kActivation,
  kKvCache,
  kIndexCache,
  kAttention,
  kIndexer,
  kDenseMlp,
  kExperts,
  kSharedExperts,
  kRouter,
  kEmbedding,
  kLmHead,
  kSmall,  // FP8 block scales: under 0.1 % of their weight
};

struct Tensor {
  // "kv_pool", "w13", "w2", "q_a", "q_b", "kv_a", "kv_b", "o_proj", "lm_head", ... One name may
  // come twice with shapes that only a fact not given would tell apart (the pool's page size).
  std::string name;
  // As one rank holds it, in elements: two FP4 of a byte count two.
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::kUnknown;
  std::int64_t elements = 0;
  std::int64_t per_rank = 1;  // copies per rank (78: one per layer)
  bool follows_pool = false;  // size follows the KV pool, not batch or model
  bool is_weight = true;      // false: pools, activations, logits
  bool view = false;          // another layout of a tensor that is listed too (w_kc and kv_b)
  Part part = Part::kActivation;
  std::string from;  // how it was computed: "256 experts x 2 x 2048/8 x 6144"

  std::int64_t bytes() const;  // of one copy; 0: its type is not known
};

// A config.json path (hf_quant_config.json beside it is read too), a folder with one, or a model
// name of models.csv.
Result<Model> load_model(std::string_view path_or_name);
// SGLang /get_server_info or /server_info JSON, or vLLM's; fills what it states: tp, ep, kv dtype,
// pool tokens, page size.
Result<Deployment> load_server_info(std::string_view path);
// Every tensor that a decode step can touch, KV pool first (absent when pool size and kv layout are
// unknown). Shapes per rank under tp/ep as SGLang and vLLM shard them: heads, intermediate sizes
// and vocabulary are divided, latent projections, router and indexer are replicated, experts
// divided by ep and each by tp / ep. Elements of MLA pool = (pool_tokens + page) x (kv_lora_rank +
// qk_rope_head_dim); a page size not given yields one pool per likely page. Scales of FP4 weights are
// padded to 128 rows and 4 columns, as their swizzled layout needs. Activations only with `batch`.
// Norms and biases are left out (0.01 % of the weights), as are shapes that would overflow. Source:
// SGLang memory_pool.py, deepseek_v2.py, modelopt_quant.py, Hugging Face modeling files.
std::vector<Tensor> tensors(const Model&, const Deployment&);
// Whether a pool of `rows` slots is the one that the deployment states: as many tokens, and at most the
// page that is reserved for padding. None where no pool was stated.
std::optional<bool> is_stated_pool(std::int64_t rows, const Deployment&);
// Length of one KV row in elements (MLA: kv_lora_rank + qk_rope_head_dim; GQA: per-rank kv heads x
// head_dim); 0 unknown.
std::int64_t kv_row_elements(const Model&, const Deployment&);
const std::vector<Model>& models();  // rows of models.csv, a user's on top
std::vector<std::string> model_names();
// Rows of a user's table, in the columns of models.csv; as add_gpu_table.
Status add_model_table(std::string_view text, std::string_view path);

}  // namespace culprit::known
