#include "lab/model/slots.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace culprit::lab {
namespace {

// Both names of a tensor, without the layer.
struct Names {
  std::string_view hf, gguf;
};

class Lister {
 public:
  Lister(Naming naming, std::int64_t layer)
      : naming_(naming),
        hf_prefix_(fmt::format("model.layers.{}.", layer)),
        gguf_prefix_(fmt::format("blk.{}.", layer)) {}
  explicit Lister(Naming naming) : naming_(naming) {}

  Slot& matrix(Names names, Role role, std::int64_t rows, std::int64_t cols, Matrix& place,
               double gain = 1) {
    Slot& slot = add(names, ".weight", role, rows, cols);
    slot.matrix = &place;
    slot.gain = gain;
    return slot;
  }
  // suffix: of both namings.
  void vector(Names names, std::string_view suffix, Role role, std::int64_t size,
              std::vector<float>& place) {
    add(names, suffix, role, size, 0).vector = &place;
  }
  bool hf() const { return naming_ == Naming::kHf; }
  std::vector<Slot> take() { return std::move(slots_); }

 private:
  Slot& add(Names names, std::string_view suffix, Role role, std::int64_t rows, std::int64_t cols) {
    Slot& slot = slots_.emplace_back();
    slot.canonical = hf_prefix_ + std::string(names.hf) + std::string(suffix);
    slot.name =
        hf() ? slot.canonical : gguf_prefix_ + std::string(names.gguf) + std::string(suffix);
    slot.role = role;
    slot.rows = rows;
    slot.cols = cols;
    return slot;
  }

  Naming naming_;
  std::string hf_prefix_, gguf_prefix_;
  std::vector<Slot> slots_;
};

void divide(Slot& slot, Division division, std::int64_t units = 0) {
  slot.division = division;
  slot.units = units;
}

// How large the outputs of a random model's layers are. Scores of attention spread enough to choose,
// and a layer adds half of what it could, so that the residual stream grows slowly; the head's spread
// makes next-token distributions neither flat nor one-hot.
constexpr double kQueryGain = 1.5, kOutputGain = 0.5, kRouterGain = 1.5, kHeadGain = 3;

void list_indexer(Lister& list, const ModelConfig& c, IndexerWeights& w) {
  const Indexer& i = c.indexer;
  if (i.heads == 0) return;
  list.matrix({"self_attn.indexer.wq_b", "indexer.attn_q_b"}, Role::kIndexer, i.heads * i.head_dim,
              c.q_lora_rank, w.q_b);
  list.matrix({"self_attn.indexer.wk", "indexer.attn_k"}, Role::kIndexer, i.head_dim, c.hidden,
              w.k);
  list.vector({"self_attn.indexer.k_norm", "indexer.k_norm"}, ".weight", Role::kGain, i.head_dim,
              w.k_norm);
  list.vector({"self_attn.indexer.k_norm", "indexer.k_norm"}, ".bias", Role::kOffset, i.head_dim,
              w.k_bias);
  list.matrix({"self_attn.indexer.weights_proj", "indexer.proj"}, Role::kIndexWeight, i.heads,
              c.hidden, w.weights);
}

void list_mla(Lister& list, const ModelConfig& c, MlaWeights& w) {
  const std::int64_t queries = c.heads * (c.nope_dim + c.rope_dim);
  if (c.q_lora_rank > 0) {
    list.matrix({"self_attn.q_a_proj", "attn_q_a"}, Role::kAttention, c.q_lora_rank, c.hidden,
                w.q_a);
    list.vector({"self_attn.q_a_layernorm", "attn_q_a_norm"}, ".weight", Role::kGain, c.q_lora_rank,
                w.q_a_norm);
    divide(list.matrix({"self_attn.q_b_proj", "attn_q_b"}, Role::kAttention, queries, c.q_lora_rank,
                       w.q_b, kQueryGain),
           Division::kRows, c.heads);
  } else {
    divide(list.matrix({"self_attn.q_proj", "attn_q"}, Role::kAttention, queries, c.hidden, w.q_b,
                       kQueryGain),
           Division::kRows, c.heads);
  }
  list.matrix({"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"}, Role::kAttention, c.latent_dim(),
              c.hidden, w.kv_a);
  list.vector({"self_attn.kv_a_layernorm", "attn_kv_a_norm"}, ".weight", Role::kGain,
              c.kv_lora_rank, w.kv_a_norm);
  if (list.hf()) {
    divide(list.matrix({"self_attn.kv_b_proj", ""}, Role::kKvB, c.heads * (c.nope_dim + c.v_dim),
                       c.kv_lora_rank, w.kv_b),
           Division::kRows, c.heads);
  } else {
    divide(list.matrix({"self_attn.kv_b_proj", "attn_k_b"}, Role::kKeyB, c.heads * c.kv_lora_rank,
                       c.nope_dim, w.k_b),
           Division::kRows, c.heads);
    divide(list.matrix({"self_attn.kv_b_proj", "attn_v_b"}, Role::kValueB, c.heads * c.v_dim,
                       c.kv_lora_rank, w.v_b),
           Division::kRows, c.heads);
  }
  divide(list.matrix({"self_attn.o_proj", "attn_output"}, Role::kAttention, c.hidden,
                     c.heads * c.v_dim, w.o, kOutputGain),
         Division::kCols, c.heads);
  list_indexer(list, c, w.indexer);
}

void list_gqa(Lister& list, const ModelConfig& c, GqaWeights& w) {
  const std::int64_t keys = c.kv_heads * c.head_dim;
  Slot& q = list.matrix({"self_attn.q_proj", "attn_q"}, Role::kAttention, c.heads * c.head_dim,
                        c.hidden, w.q, kQueryGain);
  q.turned = true;
  divide(q, Division::kRows, c.heads);
  Slot& k = list.matrix({"self_attn.k_proj", "attn_k"}, Role::kAttention, keys, c.hidden, w.k);
  k.turned = true;
  divide(k, Division::kKvRows, c.kv_heads);
  divide(list.matrix({"self_attn.v_proj", "attn_v"}, Role::kAttention, keys, c.hidden, w.v),
         Division::kKvRows, c.kv_heads);
  if (c.qk_norm) {
    list.vector({"self_attn.q_norm", "attn_q_norm"}, ".weight", Role::kGain, c.head_dim, w.q_norm);
    list.vector({"self_attn.k_norm", "attn_k_norm"}, ".weight", Role::kGain, c.head_dim, w.k_norm);
  }
  divide(list.matrix({"self_attn.o_proj", "attn_output"}, Role::kAttention, c.hidden,
                     c.heads * c.head_dim, w.o, kOutputGain),
         Division::kCols, c.heads);
}

void list_mlp(Lister& list, const std::string& hf, std::string_view gguf_suffix, std::int64_t inner,
              std::int64_t hidden, Mlp& mlp, std::int64_t expert = -1) {
  const auto add = [&](std::string_view which, std::int64_t rows, std::int64_t cols, Matrix& place,
                       Division division, double gain) {
    Slot& slot = list.matrix(
        {fmt::format("{}.{}_proj", hf, which), fmt::format("ffn_{}{}", which, gguf_suffix)},
        Role::kMlp, rows, cols, place, gain);
    slot.expert = expert;
    divide(slot, division);
  };
  add("gate", inner, hidden, mlp.gate, Division::kRows, 1);
  add("up", inner, hidden, mlp.up, Division::kRows, 1);
  add("down", hidden, inner, mlp.down, Division::kCols, kOutputGain);
}

void list_experts(Lister& list, const ModelConfig& c, LayerWeights& layer) {
  list.matrix({"mlp.gate", "ffn_gate_inp"}, Role::kRouter, c.router.experts, c.hidden, layer.router,
              kRouterGain);
  if (c.router.biased)
    list.vector({"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"}, "", Role::kBias,
                c.router.experts, layer.bias);
  layer.experts.resize(static_cast<std::size_t>(c.router.experts));
  for (std::int64_t e = 0; e < c.router.experts; ++e)
    list_mlp(list, fmt::format("mlp.experts.{}", e), "_exps", c.moe_intermediate, c.hidden,
             layer.experts[static_cast<std::size_t>(e)], e);
  if (c.router.shared > 0)
    list_mlp(list, "mlp.shared_experts", "_shexp", c.moe_intermediate * c.router.shared, c.hidden,
             layer.shared);
}

}  // namespace

std::vector<Slot> outer_slots(Weights& weights, Naming naming) {
  const ModelConfig& c = weights.config;
  Lister list(naming);
  divide(list.matrix({"model.embed_tokens", "token_embd"}, Role::kEmbedding, c.vocab, c.hidden,
                     weights.embedding),
         Division::kRows);
  list.vector({"model.norm", "output_norm"}, ".weight", Role::kGain, c.hidden, weights.norm);
  if (!c.tied_embeddings)
    divide(list.matrix({"lm_head", "output"}, Role::kHead, c.vocab, c.hidden, weights.lm_head,
                       kHeadGain),
           Division::kRows);
  return list.take();
}

std::vector<Slot> layer_slots(Weights& weights, std::int64_t layer, Naming naming) {
  const ModelConfig& c = weights.config;
  LayerWeights& place = weights.layers[static_cast<std::size_t>(layer)];
  Lister list(naming, layer);
  list.vector({"input_layernorm", "attn_norm"}, ".weight", Role::kGain, c.hidden,
              place.attention_norm);
  c.family == Family::kMla ? list_mla(list, c, place.mla) : list_gqa(list, c, place.gqa);
  list.vector({"post_attention_layernorm", "ffn_norm"}, ".weight", Role::kGain, c.hidden,
              place.mlp_norm);
  if (c.is_moe(layer))
    list_experts(list, c, place);
  else
    list_mlp(list, "mlp", "", c.intermediate, c.hidden, place.dense);
  return list.take();
}

}  // namespace culprit::lab
