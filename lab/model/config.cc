#include "lab/model/config.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <utility>

namespace culprit::lab {
namespace {

// Far above any model, and small enough that the product of an expert's extents, their number and a
// float's bytes stays below 2^63.
constexpr std::int64_t kMostHidden = std::int64_t{1} << 20,
                       kMostIntermediate = std::int64_t{1} << 22;
constexpr std::int64_t kMostLayers = 4096, kMostVocab = std::int64_t{1} << 24;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 31, kMostHeads = std::int64_t{1} << 14;
constexpr std::int64_t kMostHeadDim = std::int64_t{1} << 16, kMostRank = std::int64_t{1} << 16;
constexpr std::int64_t kMostExperts = std::int64_t{1} << 14;

// Collects the first thing that does not hold.
class Checks {
 public:
  explicit Checks(const std::string& where) : where_(where) {}

  void within(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      fail(fmt::format("\"{}\" is {}, not within {} to {}", field, value, least, most));
  }
  void divides(const char* field, std::int64_t part, const char* of, std::int64_t whole) {
    if (!failed() && whole % part != 0)
      fail(fmt::format("\"{}\" ({}) does not divide \"{}\" ({})", field, part, of, whole));
  }
  void even(const char* field, std::int64_t value) {
    if (value % 2 != 0)
      fail(fmt::format("\"{}\" is {}, but rotary positions turn pairs", field, value));
  }
  void real(const char* field, double value, double least, double most) {
    if (!(value >= least && value <= most))
      fail(fmt::format("\"{}\" is {}, not within {} to {}", field, value, least, most));
  }
  void that(bool holds, const char* otherwise) {
    if (!holds) fail(otherwise);
  }
  Status status() const { return failed() ? Status(error_) : Status(Ok{}); }

 private:
  bool failed() const { return !error_.what.empty(); }
  void fail(std::string what) {
    if (!failed()) error_ = {Error::Code::kBadInput, std::move(what), where_, "correct the field"};
  }
  const std::string& where_;
  Error error_;
};

void check_mla(Checks& checks, const ModelConfig& c) {
  checks.within("q_lora_rank", c.q_lora_rank, 0, kMostRank);
  checks.within("kv_lora_rank", c.kv_lora_rank, 1, kMostRank);
  checks.within("qk_nope_head_dim", c.nope_dim, 1, kMostHeadDim);
  checks.within("qk_rope_head_dim", c.rope_dim, 2, kMostHeadDim);
  checks.within("v_head_dim", c.v_dim, 1, kMostHeadDim);
  checks.even("qk_rope_head_dim", c.rope_dim);
  if (c.indexer.heads == 0) return;
  checks.within("index_n_heads", c.indexer.heads, 1, kMostHeads);
  checks.within("index_head_dim", c.indexer.head_dim, c.rope_dim, kMostHeadDim);
  checks.within("index_topk", c.indexer.top_k, 1, kMostPositions);
  checks.that(c.q_lora_rank > 0, "an indexer needs \"q_lora_rank\" above 0: it reads that latent");
}

void check_gqa(Checks& checks, const ModelConfig& c) {
  checks.within("num_key_value_heads", c.kv_heads, 1, kMostHeads);
  checks.within("head_dim", c.head_dim, 2, kMostHeadDim);
  checks.even("head_dim", c.head_dim);
  checks.divides("num_key_value_heads", c.kv_heads, "num_attention_heads", c.heads);
  checks.that(c.indexer.heads == 0, "an indexer is part of MLA models only");
}

void check_router(Checks& checks, const ModelConfig& c) {
  const Router& r = c.router;
  checks.within("n_routed_experts", r.experts, 1, kMostExperts);
  checks.within("num_experts_per_tok", r.per_token, 1, r.experts);
  checks.within("n_shared_experts", r.shared, 0, 64);
  checks.within("moe_intermediate_size", c.moe_intermediate, 1, kMostIntermediate);
  checks.within("n_group", r.groups, 1, r.experts);
  checks.within("topk_group", r.groups_kept, 1, r.groups);
  checks.divides("n_group", r.groups, "n_routed_experts", r.experts);
  checks.real("routed_scaling_factor", r.scale, 1e-3, 1e3);
  if (!checks.status().ok()) return;
  const std::int64_t of_group = r.experts / r.groups;
  checks.that(r.groups == 1 || of_group >= 2,
              "groups of one expert have no two best scores to add up");
  checks.within("num_experts_per_tok", r.per_token, 1, r.groups_kept * of_group);
}

void check_rope(Checks& checks, const ModelConfig& c) {
  checks.real("rms_norm_eps", c.rms_eps, 1e-12, 0.1);
  checks.real("rope_theta", c.rope_theta, 1, 1e12);
  if (!c.yarn) return;
  checks.real("factor", c.yarn->factor, 1, 1e6);
  checks.real("original_max_position_embeddings", c.yarn->original_positions, 1, 1e12);
  checks.real("beta_slow", c.yarn->beta_slow, 1e-6, 1e6);
  checks.real("beta_fast", c.yarn->beta_fast, c.yarn->beta_slow, 1e6);
  checks.real("mscale", c.yarn->mscale, 0, 100);
  checks.real("mscale_all_dim", c.yarn->mscale_all_dim, 0, 100);
}

}  // namespace

double ModelConfig::softmax_scale() const {
  const double plain = 1 / std::sqrt(static_cast<double>(qk_dim()));
  if (family != Family::kMla || !yarn || yarn->factor <= 1) return plain;
  const double magnitude = 0.1 * yarn->mscale_all_dim * std::log(yarn->factor) + 1;
  return plain * magnitude * magnitude;
}

Status check(const ModelConfig& config, const std::string& where) {
  Checks checks(where);
  checks.within("hidden_size", config.hidden, 1, kMostHidden);
  checks.within("num_hidden_layers", config.layers, 1, kMostLayers);
  checks.within("vocab_size", config.vocab, 1, kMostVocab);
  checks.within("max_position_embeddings", config.max_positions, 1, kMostPositions);
  checks.within("num_attention_heads", config.heads, 1, kMostHeads);
  config.family == Family::kMla ? check_mla(checks, config) : check_gqa(checks, config);
  if (config.router.experts != 0) check_router(checks, config);
  checks.within("first_k_dense_replace", config.dense_layers, 0, config.layers);
  if (!config.is_moe(0))
    checks.within("intermediate_size", config.intermediate, 1, kMostIntermediate);
  check_rope(checks, config);
  for (const std::int64_t token : config.eos)
    checks.within("eos_token_id", token, 0, config.vocab - 1);
  return checks.status();
}

}  // namespace culprit::lab
