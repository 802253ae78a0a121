#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "known/models.h"
#include "known/models_config.h"

namespace culprit::known {
namespace {

constexpr std::int64_t kSmallestPage = 1;
constexpr std::int64_t kSparsePage = 64;  // the only page size of sparse-attention pools on CUDA
constexpr std::int64_t kNvfp4Group = 16;  // one E4M3 scale per 16 weights; MXFP4: E8M0 per 32
constexpr std::int64_t kFp8Block = 128;   // DeepSeek's FP8: one FP32 scale per 128 x 128 weights

// Ranks as a divisor: a flag may say anything.
std::int64_t at_least_one(std::int64_t n) {
  constexpr std::int64_t kMostRanks = 1'000'000;
  return std::clamp<std::int64_t>(n, 1, kMostRanks);
}
std::int64_t share(std::int64_t n, std::int64_t ranks) { return (n + ranks - 1) / ranks; }
std::int64_t round_up(std::int64_t n, std::int64_t to) { return share(n, to) * to; }

// "2048/8", or "2048" on one rank.
std::string share_text(std::int64_t n, std::int64_t ranks) {
  return ranks == 1 ? fmt::format("{}", n) : fmt::format("{}/{}", n, ranks);
}

std::optional<std::int64_t> product(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size <= 0 || __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
  }
  return elements;
}

Dtype quantized_dtype(const Model& model) {
  const auto has = [&](std::string_view part) {
    return model.quant_algo.find(part) != std::string::npos;
  };
  if (model.quant_algo.empty()) return model.weight_dtype;
  if (has("FP4")) return Dtype::kFp4;
  if (has("INT4") || has("W4A16") || has("W4A8")) return Dtype::kI4;
  if (has("FP8")) return Dtype::kFp8E4m3;
  if (has("INT8") || has("W8A8")) return Dtype::kI8;
  return Dtype::kUnknown;  // mixed precision, or a format this table does not know
}

class Builder {
 public:
  Builder(const Model& model, const Deployment& deployment)
      : model_(model),
        deployment_(deployment),
        tp_(at_least_one(deployment.tp)),
        ep_(std::min(at_least_one(deployment.ep), at_least_one(model.experts))),
        attention_tp_(at_least_one(tp_ / at_least_one(deployment.attention_dp))),
        moe_tp_(at_least_one(tp_ / ep_)) {}

  std::vector<Tensor> build() {
    pools();
    live_rows();
    if (model_.experts > 0) experts();
    model_.is_mla() ? mla() : gqa();
    if (model_.index_heads > 0) indexer();
    dense();
    vocabulary();
    if (deployment_.batch) activations(*deployment_.batch);
    return std::move(tensors_);
  }

 private:
  Tensor* add(std::string name, std::vector<std::int64_t> shape, Dtype dtype, std::int64_t per_rank,
              std::string from) {
    const auto elements = product(shape);
    if (!elements || per_rank <= 0) return nullptr;
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = std::move(shape);
    tensor.dtype = dtype;
    tensor.elements = *elements;
    tensor.per_rank = per_rank;
    tensor.from = std::move(from);
    tensors_.push_back(std::move(tensor));
    return &tensors_.back();
  }

  // A weight and, where its type has them, its scales.
  void weight(Part part, const char* name, std::vector<std::int64_t> shape, Dtype dtype,
              std::int64_t layers, const std::string& from) {
    Tensor* tensor = add(name, shape, dtype, layers, from);
    if (tensor == nullptr) return;
    tensor->part = part;
    std::int64_t& rows = shape[shape.size() - 2];
    std::int64_t& columns = shape.back();
    const bool fp4 = dtype == Dtype::kFp4, fp8 = dtype == Dtype::kFp8E4m3;
    const std::int64_t group = model_.quant_group > 0 ? model_.quant_group : kNvfp4Group;
    if (fp8 && model_.quant_group != kFp8Block) return;  // one scale per tensor or row
    if (!fp4 && !fp8 && dtype != Dtype::kI4) return;
    if (fp8) rows = share(rows, kFp8Block);
    columns = share(columns, fp8 ? kFp8Block : group);
    if (fp4 && group == kNvfp4Group) {  // swizzled in tiles of 128 x 4
      rows = round_up(rows, 128);
      columns = round_up(columns, 4);
    }
    const Dtype scales = fp8                    ? Dtype::kF32
                         : !fp4                 ? model_.weight_dtype
                         : group == kNvfp4Group ? Dtype::kFp8E4m3
                                                : Dtype::kU8;
    Tensor* scale = add(
        std::string(name) + "_scale", std::move(shape), scales, layers,
        fmt::format("{}, one scale per {}{}", from, fp8 ? "128 x " : "", fp8 ? kFp8Block : group));
    if (scale != nullptr) scale->part = fp8 ? Part::kSmall : part;
  }

  // The same bytes as tensors that are listed, in another layout.
  void view(Part part, std::string name, std::vector<std::int64_t> shape, Dtype dtype,
            std::int64_t layers, std::string from) {
    Tensor* tensor = add(std::move(name), std::move(shape), dtype, layers, std::move(from));
    if (tensor == nullptr) return;
    tensor->part = part;
    tensor->view = true;
  }

  // Dtype of a module, named as in the checkpoint, at a layer that has it.
  Dtype module_dtype(std::int64_t layer, std::string_view module) const {
    const std::string name = fmt::format("model.layers.{}.{}", layer, module);
    return is_unquantized(model_, name) ? model_.weight_dtype : quantized_dtype(model_);
  }
  std::int64_t middle_layer() const { return model_.layers / 2; }

  void add_pool(std::string name, std::vector<std::int64_t> shape, Dtype dtype,
                std::int64_t per_rank, std::string from) {
    Tensor* pool = add(std::move(name), std::move(shape), dtype, per_rank, std::move(from));
    if (pool == nullptr) return;
    pool->follows_pool = true;
    pool->is_weight = false;
    pool->part = pool->name == "index_pool" ? Part::kIndexCache : Part::kKvCache;
    pool->view = pool->name == "kv_pool_scaled";
  }

  // Rows hold one page more than the pool's tokens: slot 0 takes the writes of padding. Without a
  // page size the likely ones are all given; 0 is a count of rows, or a server that pads none.
  std::vector<std::int64_t> pages() const {
    if (deployment_.page_size) return {*deployment_.page_size};
    if (model_.index_heads > 0) return {kSparsePage, 0};
    return {kSmallestPage, kSparsePage, 0};
  }

  void pools() {
    const std::int64_t row = kv_row_elements(model_, deployment_);
    if (!deployment_.pool_tokens || row <= 0) return;
    const Dtype dtype = deployment_.kv_dtype.value_or(model_.kv_dtype.value_or(Dtype::kUnknown));
    constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
    for (const std::int64_t page : pages()) {
      if (page < 0 || *deployment_.pool_tokens > kMostRows || page > kMostRows) continue;
      const std::int64_t rows = *deployment_.pool_tokens + page;
      const std::string rows_text =
          page == 0 ? fmt::format("{} rows", rows)
                    : fmt::format("({} tokens + page of {})", *deployment_.pool_tokens, page);
      const std::int64_t layers = model_.attention_count();
      if (!model_.is_mla()) {
        add_pool("kv_pool", {rows, row / model_.head_dim, model_.head_dim}, dtype, 2 * layers,
                 fmt::format("{} x {} heads x {}, K and V each", rows_text, row / model_.head_dim,
                             model_.head_dim));
        continue;
      }
      add_pool(
          "kv_pool", {rows, 1, row}, dtype, layers,
          fmt::format("{} x ({} + {})", rows_text, model_.kv_lora_rank, model_.qk_rope_head_dim));
      if (model_.index_heads > 0) sparse_pools(rows, rows_text, dtype);
    }
  }

  // What a gather of the live rows would write: the pool's row in the model's own type.
  void live_rows() {
    const std::int64_t row = kv_row_elements(model_, deployment_);
    if (!deployment_.active_tokens || row <= 0) return;
    Tensor* live = add("kv_active", {*deployment_.active_tokens, 1, row}, model_.weight_dtype,
                       model_.attention_count(),
                       fmt::format("{} live tokens x {}", *deployment_.active_tokens, row));
    if (live != nullptr) live->is_weight = false;
  }

  // DSA: an FP8 row of 512 values, 4 FP32 scales and 64 BF16 (656 bytes) unless the backend reads
  // raw rows; and the indexer's keys, 128 FP8 and one FP32 scale per token.
  void sparse_pools(std::int64_t rows, const std::string& rows_text, Dtype dtype) {
    constexpr std::int64_t kScaleBytes = 4;
    constexpr std::int64_t kScaleEvery = 128;
    const std::int64_t layers = model_.attention_count();
    const std::int64_t index_layers = model_.index_count();
    const std::int64_t row_bytes = model_.kv_lora_rank +
                                   kScaleBytes * share(model_.kv_lora_rank, kScaleEvery) +
                                   2 * model_.qk_rope_head_dim;
    if (dtype == Dtype::kFp8E4m3 || dtype == Dtype::kUnknown) {
      add_pool("kv_pool_scaled", {rows, 1, row_bytes}, Dtype::kU8, layers,
               fmt::format("{} x {} bytes (FP8 + scales + BF16 rope)", rows_text, row_bytes));
    }
    const std::int64_t page_bytes = kSparsePage * (model_.index_head_dim + kScaleBytes);
    add_pool("index_pool", {rows / kSparsePage, page_bytes}, Dtype::kU8, index_layers,
             fmt::format("{} / {} pages x {} bytes", rows_text, kSparsePage, page_bytes));
  }

  void experts() {
    const std::int64_t size = model_.expert_size();
    const std::int64_t local = share(model_.experts, ep_);
    const std::int64_t inner = share(size, moe_tp_);
    const std::int64_t layers = model_.moe_count();
    const std::int64_t layer = model_.layers - 1;
    const Dtype dtype = module_dtype(layer, "mlp.experts.0.gate_proj");
    const std::string inner_text = share_text(size, moe_tp_);
    const std::string local_text = share_text(model_.experts, ep_);
    weight(Part::kExperts, "w13", {local, 2 * inner, model_.hidden}, dtype, layers,
           fmt::format("{} experts x 2 x {} x {}", local_text, inner_text, model_.hidden));
    weight(Part::kExperts, "w2", {local, model_.hidden, inner}, dtype, layers,
           fmt::format("{} experts x {} x {}", local_text, model_.hidden, inner_text));
    weight(Part::kRouter, "router", {model_.experts, model_.hidden}, model_.weight_dtype, layers,
           fmt::format("{} experts x {}", model_.experts, model_.hidden));
    const std::int64_t shared = model_.shared_size();
    const Dtype shared_dtype = module_dtype(layer, "mlp.shared_experts.gate_proj");
    weight(Part::kSharedExperts, "shared_gate_up", {2 * share(shared, tp_), model_.hidden},
           shared_dtype, layers,
           fmt::format("2 x {} x {}", share_text(shared, tp_), model_.hidden));
    weight(Part::kSharedExperts, "shared_down", {model_.hidden, share(shared, tp_)}, shared_dtype,
           layers, fmt::format("{} x {}", model_.hidden, share_text(shared, tp_)));
  }

  void mla() {
    const std::int64_t layers = model_.attention_count();
    const std::int64_t heads = share(model_.heads, attention_tp_);
    const std::string heads_text = share_text(model_.heads, attention_tp_);
    const std::int64_t qk = model_.qk_nope_head_dim + model_.qk_rope_head_dim;
    const std::int64_t row = model_.kv_lora_rank + model_.qk_rope_head_dim;
    const auto add = [&](const char* name, std::vector<std::int64_t> shape, const char* module,
                         const std::string& from) {
      weight(Part::kAttention, name, std::move(shape), module_dtype(middle_layer(), module), layers,
             from);
    };
    if (model_.q_lora_rank > 0) {
      add("q_a", {model_.q_lora_rank, model_.hidden}, "self_attn.q_a_proj",
          fmt::format("{} x {}, replicated", model_.q_lora_rank, model_.hidden));
      add("q_b", {heads * qk, model_.q_lora_rank}, "self_attn.q_b_proj",
          fmt::format("{} heads x {} x {}", heads_text, qk, model_.q_lora_rank));
      view(Part::kAttention, "qkv_a", {model_.q_lora_rank + row, model_.hidden},
           module_dtype(middle_layer(), "self_attn.kv_a_proj_with_mqa"), layers,
           fmt::format("q_a and kv_a as one: ({} + {}) x {}", model_.q_lora_rank, row,
                       model_.hidden));
    } else {
      add("q", {heads * qk, model_.hidden}, "self_attn.q_proj",
          fmt::format("{} heads x {} x {}", heads_text, qk, model_.hidden));
    }
    add("kv_a", {row, model_.hidden}, "self_attn.kv_a_proj_with_mqa",
        fmt::format("({} + {}) x {}, replicated", model_.kv_lora_rank, model_.qk_rope_head_dim,
                    model_.hidden));
    add("kv_b", {heads * (model_.qk_nope_head_dim + model_.v_head_dim), model_.kv_lora_rank},
        "self_attn.kv_b_proj",
        fmt::format("{} heads x ({} + {}) x {}", heads_text, model_.qk_nope_head_dim,
                    model_.v_head_dim, model_.kv_lora_rank));
    absorbed(heads, heads_text);
    add("o_proj", {model_.hidden, heads * model_.v_head_dim}, "self_attn.o_proj",
        fmt::format("{} x {} heads x {}", model_.hidden, heads_text, model_.v_head_dim));
  }

  // kv_b as decode reads it: K's half multiplied into the queries, V's half into the output.
  void absorbed(std::int64_t heads, const std::string& heads_text) {
    const std::int64_t layers = model_.attention_count();
    view(Part::kAttention, "w_kc", {heads, model_.qk_nope_head_dim, model_.kv_lora_rank},
         model_.weight_dtype, layers,
         fmt::format("K half of kv_b: {} heads x {} x {}", heads_text, model_.qk_nope_head_dim,
                     model_.kv_lora_rank));
    view(Part::kAttention, "w_vc", {heads, model_.kv_lora_rank, model_.v_head_dim},
         model_.weight_dtype, layers,
         fmt::format("V half of kv_b: {} heads x {} x {}", heads_text, model_.kv_lora_rank,
                     model_.v_head_dim));
  }

  void gqa() {
    const std::int64_t layers = model_.attention_count();
    const std::int64_t layer = middle_layer();
    const std::int64_t heads = share(model_.heads, attention_tp_);
    const std::int64_t q = heads * model_.head_dim;
    const std::int64_t kv = kv_row_elements(model_, deployment_);
    const std::string q_text =
        fmt::format("{} heads x {}", share_text(model_.heads, attention_tp_), model_.head_dim);
    const Dtype dtype = module_dtype(layer, "self_attn.q_proj");
    if (model_.q_lora_rank > 0) {  // only the queries of this design are known; see kv_row_elements
      weight(Part::kAttention, "q_a", {model_.q_lora_rank, model_.hidden}, dtype, layers,
             fmt::format("{} x {}, replicated", model_.q_lora_rank, model_.hidden));
      weight(Part::kAttention, "q_b", {q, model_.q_lora_rank}, dtype, layers,
             fmt::format("{} x {}", q_text, model_.q_lora_rank));
      return;
    }
    const std::string from = fmt::format("{} x {}", q_text, model_.hidden);
    if (kv > 0) {
      weight(Part::kAttention, "qkv", {q + 2 * kv, model_.hidden}, dtype, layers,
             fmt::format("({} + 2 x {}) x {}", q_text, kv, model_.hidden));
      view(Part::kAttention, "q", {q, model_.hidden}, dtype, layers, from);
    } else {
      weight(Part::kAttention, "q", {q, model_.hidden}, dtype, layers, from);
    }
    for (const char* name : {"k", "v"}) {
      view(Part::kAttention, name, {kv, model_.hidden}, dtype, layers,
           fmt::format("{} x {}", kv, model_.hidden));
    }
    weight(Part::kAttention, "o_proj", {model_.hidden, q}, module_dtype(layer, "self_attn.o_proj"),
           layers, fmt::format("{} x {}", model_.hidden, q_text));
  }

  void indexer() {
    const std::int64_t layers = model_.index_count();
    const std::int64_t input = model_.q_lora_rank > 0 ? model_.q_lora_rank : model_.hidden;
    const Dtype dtype = module_dtype(middle_layer(), "self_attn.indexer.wq_b");
    weight(Part::kIndexer, "index_q", {model_.index_heads * model_.index_head_dim, input}, dtype,
           layers,
           fmt::format("{} heads x {} x {}, replicated", model_.index_heads, model_.index_head_dim,
                       input));
    weight(Part::kIndexer, "index_k", {model_.index_head_dim, model_.hidden}, dtype, layers,
           fmt::format("{} x {}, replicated", model_.index_head_dim, model_.hidden));
    weight(Part::kIndexer, "index_weights", {model_.index_heads, model_.hidden}, dtype, layers,
           fmt::format("{} heads x {}, replicated", model_.index_heads, model_.hidden));
  }

  void dense() {
    const std::int64_t layers = model_.dense_count();
    const std::int64_t inner = share(model_.intermediate, tp_);
    const std::string inner_text = share_text(model_.intermediate, tp_);
    const Dtype dtype = module_dtype(0, "mlp.gate_proj");
    weight(Part::kDenseMlp, "gate_up", {2 * inner, model_.hidden}, dtype, layers,
           fmt::format("2 x {} x {}", inner_text, model_.hidden));
    weight(Part::kDenseMlp, "down", {model_.hidden, inner}, dtype, layers,
           fmt::format("{} x {}", model_.hidden, inner_text));
  }

  // SGLang and vLLM pad the vocabulary to a multiple of 64 before they divide it.
  std::int64_t vocabulary_share() const {
    constexpr std::int64_t kPadding = 64;
    return share(share(model_.vocab, kPadding) * kPadding, tp_);
  }

  void vocabulary() {
    const std::string from = fmt::format("{} x {}", share_text(model_.vocab, tp_), model_.hidden);
    weight(Part::kLmHead, "lm_head", {vocabulary_share(), model_.hidden}, model_.weight_dtype, 1,
           from);
    weight(Part::kEmbedding, "embed", {vocabulary_share(), model_.hidden}, model_.weight_dtype, 1,
           from);
    if (model_.tied_embeddings && !tensors_.empty()) tensors_.back().view = true;
  }

  void activations(std::int64_t batch) {
    const std::size_t first = tensors_.size();
    const Dtype dtype = model_.weight_dtype;
    const std::int64_t layers = model_.layers;
    const std::int64_t row = kv_row_elements(model_, deployment_);
    const std::int64_t qk =
        model_.is_mla() ? model_.qk_nope_head_dim + model_.qk_rope_head_dim : model_.head_dim;
    add("hidden", {batch, model_.hidden}, dtype, layers,
        fmt::format("batch {} x {}", batch, model_.hidden));
    add("queries", {batch, share(model_.heads, attention_tp_), qk}, dtype, model_.attention_count(),
        fmt::format("batch {} x {} heads x {}", batch, share_text(model_.heads, attention_tp_),
                    qk));
    add("kv_new", {batch, row}, dtype, model_.attention_count(),
        fmt::format("batch {} x {}", batch, row));
    add("router_logits", {batch, model_.experts}, dtype, model_.moe_count(),
        fmt::format("batch {} x {} experts", batch, model_.experts));
    add("logits", {batch, vocabulary_share()}, dtype, 1,
        fmt::format("batch {} x {}", batch, share_text(model_.vocab, tp_)));
    if (tp_ > 1) {
      add("logits_gathered", {batch, model_.vocab}, dtype, 1,
          fmt::format("batch {} x {}", batch, model_.vocab));
    }
    for (std::size_t i = first; i < tensors_.size(); ++i) tensors_[i].is_weight = false;
  }

  const Model& model_;
  const Deployment& deployment_;
  std::int64_t tp_, ep_, attention_tp_, moe_tp_;
  std::vector<Tensor> tensors_;
};

}  // namespace

std::int64_t Tensor::bytes() const { return (elements * bits(dtype) + 7) / 8; }

std::vector<Tensor> tensors(const Model& model, const Deployment& deployment) {
  return Builder(model, deployment).build();
}

}  // namespace culprit::known
