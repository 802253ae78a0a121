#include "lab/engine/mla.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lab/kernels/choose.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kHeadsTogether = 8;      // in a piece of per-head work
constexpr std::int64_t kScoredPositions = 512;  // in a piece of the indexer's work
constexpr float kIndexNormEps = 1e-6F;  // of the reference's LayerNorm, whatever the model's

HeadLayout layout_of(const ModelConfig& config, std::int64_t heads) {
  return {.heads = heads,
          .groups = 1,
          .width = config.latent_dim(),
          .value_width = config.kv_lora_rank,
          .key_step = 0,
          .value_at = 0,
          .value_step = 0,
          .scale = static_cast<float>(config.softmax_scale())};
}

// What a step may gather: each token its picked rows, or each request its context.
std::int64_t most_gathered(const ModelConfig& config, const Pool& pool, const StepLimits& limits) {
  if (config.indexer.heads > 0) return limits.rows * std::min(config.indexer.top_k, limits.longest);
  return std::min(limits.requests * limits.longest, pool.shape().tokens);
}

// Reads q_a's output, or the hidden states where there is no q_a.
const Matrix& first_of_queries(const MlaWeights& w) { return w.q_a.empty() ? w.q_b : w.q_a; }

}  // namespace

Result<std::unique_ptr<MlaBlock>> MlaBlock::make(const Weights& weights, Tools& tools, Pool& pool,
                                                 Reading reading, const StepLimits& limits) {
  const std::int64_t heads = weights.layers.front().mla.q_b.rows / weights.config.qk_dim();
  TRY(Absorbed absorbed, Absorbed::make(weights, heads));
  return std::unique_ptr<MlaBlock>(
      new MlaBlock(weights, tools, pool, reading, limits, std::move(absorbed)));
}

MlaBlock::MlaBlock(const Weights& weights, Tools& tools, Pool& pool, Reading reading,
                   const StepLimits& limits, Absorbed absorbed)
    : weights_(weights),
      config_(weights.config),
      tools_(tools),
      pool_(pool),
      limits_(limits),
      heads_(weights.layers.front().mla.q_b.rows / config_.qk_dim()),
      q_rank_(weights.layers.front().mla.q_a.rows),
      absorbed_(std::move(absorbed)),
      attention_(tools.kernels, tools.launch, pool, layout_of(config_, heads_), reading,
                 {limits.rows, most_gathered(config_, pool, limits)}) {}

void MlaBlock::carve(Carver& carver) {
  const ModelConfig& c = config_;
  const std::int64_t rows = limits_.rows;
  hidden_in_ = carver.take<std::byte>(Input::bytes(rows, c.hidden, 4));
  q_in_ = carver.take<std::byte>(Input::bytes(rows, std::max(q_rank_, c.hidden), 2));
  k_in_ = carver.take<std::byte>(heads_ * Input::bytes(rows, c.nope_dim, 1));
  v_in_ = carver.take<std::byte>(heads_ * Input::bytes(rows, c.kv_lora_rank, 1));
  o_in_ = carver.take<std::byte>(Input::bytes(rows, heads_ * c.v_dim, 1));
  q_a_ = carver.take<float>(rows * q_rank_);
  kv_ = carver.take<float>(rows * c.latent_dim());
  q_ = carver.take<float>(rows * heads_ * c.qk_dim());
  latent_q_ = carver.take<float>(rows * heads_ * c.latent_dim());
  values_ = carver.take<float>(rows * heads_ * c.v_dim);
  reaches_ = carver.take<Reach>(rows);
  if (c.indexer.heads > 0) {
    index_key_ = carver.take<float>(rows * c.indexer.head_dim);
    index_weights_ = carver.take<float>(rows * c.indexer.heads);
    index_q_ = carver.take<float>(rows * c.indexer.heads * c.indexer.head_dim);
    index_scores_ = carver.take<float>(rows * limits_.longest);
    picked_ = carver.take<std::int32_t>(rows * c.indexer.top_k);
  }
  cut_.carve(carver, rows);
  attention_.carve(carver);
}

Input MlaBlock::input(int layer, std::int64_t tokens) const {
  const MlaWeights& w = weights(layer);
  return Input(hidden_in_, tokens,
               {&first_of_queries(w), &w.kv_a, &w.indexer.k, &w.indexer.weights});
}

void MlaBlock::operator()(int layer, StepRows rows, const RopeTable& rope, const Input& in,
                          float* y) {
  const MlaWeights& w = weights(layer);
  tools_.linear("qkv_a", layer,
                {{&w.q_a, w.q_a.empty() ? Batch{} : in.of(w.q_a), q_a_, q_rank_},
                 {&w.kv_a, in.of(w.kv_a), kv_, config_.latent_dim()}});
  if (config_.indexer.heads > 0)
    tools_.linear(
        "indexer k", layer,
        {{&w.indexer.k, in.of(w.indexer.k), index_key_, config_.indexer.head_dim},
         {&w.indexer.weights, in.of(w.indexer.weights), index_weights_, config_.indexer.heads}});
  store(layer, rows, rope);
  queries(layer, rows, in);
  absorb(layer, rows, rope);
  choose(layer, rows, rope);
  attention_(layer, {reaches_, static_cast<std::size_t>(rows.tokens())}, latent_q_);
  back(layer, rows.tokens(), y);
}

// The new rows of the pool: norm of the latent, rope of the shared key; the indexer's key.
void MlaBlock::store(int layer, StepRows rows, const RopeTable& rope) {
  const MlaWeights& w = weights(layer);
  const std::int64_t latent = config_.kv_lora_rank, width = config_.latent_dim();
  const std::int64_t tokens = rows.tokens();
  const Launch launch{.kernel = "kv-store",
                      .symbol = "set_mla_kv_buffer_kernel",
                      .format = pool_.format_name(),
                      .layer = layer,
                      .read = tokens * width * 4,
                      .written = tokens * (pool_.shape().row_bytes() + pool_.shape().index_bytes()),
                      .tokens = tokens,
                      .rows = width,
                      .cols = width};
  const Op op(tools_.launch, "set_mla_kv_buffer",
              dtype_of(pool_.shape().format)(pool_.shape().rows(), 1, width),
              profile::kFloat(tokens, 1, width));
  tools_.launch(launch, tokens, [=, this, &w, &rope](std::int64_t t, int) {
    const StepRow& row = rows[t];
    float* kv = kv_ + t * width;
    tools_.kernels.rms_norm(kv, w.kv_a_norm.data(), static_cast<float>(config_.rms_eps), latent,
                            kv);
    tools_.kernels.rope(kv + latent, rope.cos(t), rope.sin(t), config_.rope_dim,
                        config_.rope == RopeStyle::kHalfSplit);
    pool_.store(tools_.kernels, layer, row.slots[row.position], kv);
    if (config_.indexer.heads > 0)
      store_index_key(layer, row, rope.cos(t), rope.sin(t),
                      index_key_ + t * config_.indexer.head_dim);
  });
}

void MlaBlock::store_index_key(int layer, const StepRow& row, const float* cos, const float* sin,
                               float* key) {
  const IndexerWeights& w = weights(layer).indexer;
  const std::int64_t dim = config_.indexer.head_dim;
  tools_.kernels.layer_norm(key, w.k_norm.data(), w.k_bias.empty() ? nullptr : w.k_bias.data(),
                            kIndexNormEps, dim, key);
  tools_.kernels.rope(key, cos, sin, config_.rope_dim,
                      config_.indexer.rope == RopeStyle::kHalfSplit);
  pool_.store_index_key(tools_.kernels, layer, row.slots[row.position], key);
}

// Whether a row has more positions than the indexer lets it attend to.
bool MlaBlock::picks(const StepRows& rows) const {
  return config_.indexer.heads > 0 && rows.furthest() >= config_.indexer.top_k;
}

// q_a's norm, then q of all heads, and the indexer's queries where they have something to pick.
void MlaBlock::queries(int layer, StepRows rows, const Input& in) {
  const MlaWeights& w = weights(layer);
  const std::int64_t tokens = rows.tokens();
  const std::int64_t q_width = heads_ * config_.qk_dim();
  if (w.q_a.empty()) {
    tools_.linear("q_b", layer, {{&w.q_b, in.of(w.q_b), q_, q_width}});
    return;
  }
  const Input q_in(q_in_, tokens, {&w.q_b, &w.indexer.q_b});
  {
    const Launch launch = row_launch("q_a norm", "rms_norm_kernel", layer, tokens, q_rank_);
    const Op op(tools_.launch, "rmsnorm", profile::kFloat(tokens, q_rank_),
                profile::kFloat(q_rank_));
    tools_.launch(launch, tokens, [=, this, &w](std::int64_t t, int) {
      float* q_a = q_a_ + t * q_rank_;
      tools_.kernels.rms_norm(q_a, w.q_a_norm.data(), static_cast<float>(config_.rms_eps), q_rank_,
                              q_a);
      q_in.prepare(tools_.kernels, q_a, t);
    });
  }
  tools_.linear("q_b", layer, {{&w.q_b, q_in.of(w.q_b), q_, q_width}});
  if (picks(rows))
    tools_.linear("indexer q", layer,
                  {{&w.indexer.q_b, q_in.of(w.indexer.q_b), index_q_,
                    config_.indexer.heads * config_.indexer.head_dim}});
}

Input MlaBlock::head_input(std::byte* buffer, const Matrix& reader, std::int64_t head,
                           std::int64_t tokens) const {
  return Input(buffer + head * Input::bytes(limits_.rows, reader.cols, 1), tokens, {&reader});
}

// q_nope of each head to the latent space; its rope part beside it.
void MlaBlock::absorb(int layer, StepRows rows, const RopeTable& rope) {
  const AbsorbedLayer& absorbed = absorbed_.layer(layer);
  const std::int64_t tokens = rows.tokens();
  const std::int64_t width = config_.latent_dim(), qk = config_.qk_dim(), nope = config_.nope_dim;
  const std::int64_t blocks = (heads_ + kHeadsTogether - 1) / kHeadsTogether;
  {
    const Launch launch =
        row_launch("q rope", "rotary_embedding_kernel", layer, tokens, heads_ * qk);
    const Op op(tools_.launch, "rotary_embedding", profile::kFloat(tokens, heads_, qk));
    tools_.launch(launch, tokens * blocks, [=, this, &absorbed, &rope](std::int64_t piece, int) {
      const std::int64_t t = piece / blocks, first = piece % blocks * kHeadsTogether;
      for (std::int64_t head = first; head < std::min(first + kHeadsTogether, heads_); ++head) {
        float* q = q_ + (t * heads_ + head) * qk;
        tools_.kernels.rope(q + nope, rope.cos(t), rope.sin(t), config_.rope_dim,
                            config_.rope == RopeStyle::kHalfSplit);
        std::copy(q + nope, q + qk, latent_q_ + (t * heads_ + head) * width + config_.kv_lora_rank);
        const Matrix& k_b = absorbed.k_b[static_cast<std::size_t>(head)];
        head_input(k_in_, k_b, head, tokens).prepare(tools_.kernels, q, t);
      }
    });
  }
  tools_.linear.each("k_b", layer, heads_, [=, this, &absorbed](std::int64_t head) {
    const Matrix& k_b = absorbed.k_b[static_cast<std::size_t>(head)];
    return LinearTask{&k_b, head_input(k_in_, k_b, head, tokens).of(k_b), latent_q_ + head * width,
                      heads_ * width};
  });
}

// The positions of rows that have more than the indexer lets them attend to.
void MlaBlock::choose(int layer, StepRows rows, const RopeTable& rope) {
  const Indexer& indexer = config_.indexer;
  if (!picks(rows)) return;
  const std::int64_t tokens = rows.tokens();
  const float head_factor = 1 / std::sqrt(static_cast<float>(indexer.heads));
  const std::int64_t width = indexer.heads * indexer.head_dim;
  {
    const Launch launch =
        row_launch("indexer rope", "rotary_embedding_kernel", layer, tokens, width);
    const Op op(tools_.launch, "rotary_embedding",
                profile::kFloat(tokens, indexer.heads, indexer.head_dim));
    tools_.launch(launch, tokens, [=, this, &indexer, &rope](std::int64_t t, int) {
      for (std::int64_t head = 0; head < indexer.heads; ++head)
        tools_.kernels.rope(index_q_ + t * width + head * indexer.head_dim, rope.cos(t),
                            rope.sin(t), config_.rope_dim, indexer.rope == RopeStyle::kHalfSplit);
      float* weights = index_weights_ + t * indexer.heads;
      for (std::int64_t head = 0; head < indexer.heads; ++head) weights[head] *= head_factor;
    });
  }
  score(layer, rows);
  pick(layer, rows);
}

// What the indexer makes of each position of rows that have too many.
void MlaBlock::score(int layer, StepRows rows) {
  const Indexer& indexer = config_.indexer;
  const std::int64_t tokens = rows.tokens(), width = indexer.heads * indexer.head_dim;
  const Launch launch{.kernel = "indexer scores",
                      .symbol = "fp8_mqa_logits_kernel",
                      .format = "e4m3",
                      .layer = layer,
                      .tokens = tokens,
                      .rows = 0,
                      .cols = width};
  const Op op(tools_.launch, "fp8_mqa_logits",
              profile::kFloat(tokens, indexer.heads, indexer.head_dim),
              profile::kUint8(pool_.shape().rows(), pool_.shape().index_bytes()));
  const auto prepare = [=, this, &indexer](Launch& its) {
    cut_.clear();
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t reach = rows[t].position + 1, count = reach > indexer.top_k ? reach : 0;
      its.read += count * pool_.shape().index_bytes();
      its.written += count * 4;
      its.rows = std::max(its.rows, count);
      cut_.add(count, kScoredPositions);
    }
    return cut_.pieces();
  };
  tools_.launch(launch, prepare, [=, this, &indexer](std::int64_t piece, int) {
    const Cut::Part part = cut_[piece];
    const Query query{.q = index_q_ + part.item * width,
                      .heads = indexer.heads,
                      .width = indexer.head_dim,
                      .value_width = 0,
                      .scale = 1 / std::sqrt(static_cast<float>(indexer.head_dim))};
    tools_.kernels.index_scores(query, index_weights_ + part.item * indexer.heads,
                                pool_.index_keys(layer, rows[part.item].slots), part.begin,
                                part.end, index_scores_ + part.item * limits_.longest + part.begin);
  });
}

void MlaBlock::pick(int layer, StepRows rows) {
  const Indexer& indexer = config_.indexer;
  const std::int64_t tokens = rows.tokens();
  const Launch launch{.kernel = "indexer top-k",
                      .symbol = "top_k_per_row_kernel",
                      .format = {},
                      .layer = layer,
                      .written = tokens * indexer.top_k * 4,
                      .tokens = tokens,
                      .rows = indexer.top_k,
                      .cols = rows.furthest() + 1};
  const Op op(tools_.launch, "top_k_per_row", profile::kFloat(tokens, rows.furthest() + 1));
  const auto prepare = [=, &indexer](Launch& its) {
    for (std::int64_t t = 0; t < tokens; ++t)
      its.read += rows[t].position >= indexer.top_k ? (rows[t].position + 1) * 4 : 0;
    return tokens;
  };
  tools_.launch(launch, prepare, [=, this, &indexer](std::int64_t t, int) {
    const StepRow& row = rows[t];
    if (row.position + 1 <= indexer.top_k) return;
    std::int32_t* picked = picked_ + t * indexer.top_k;
    const std::int64_t count =
        top_k(index_scores_ + t * limits_.longest, row.position + 1, indexer.top_k, picked);
    for (std::int64_t i = 0; i < count; ++i) picked[i] = row.slots[picked[i]];
    reaches_[t] = {picked, count};
  });
}

// The attended latents to values per head, and those to the hidden states.
void MlaBlock::back(int layer, std::int64_t tokens, float* y) {
  const AbsorbedLayer& absorbed = absorbed_.layer(layer);
  const MlaWeights& w = weights(layer);
  const std::int64_t latent = config_.kv_lora_rank, v = config_.v_dim;
  const std::int64_t blocks = (heads_ + kHeadsTogether - 1) / kHeadsTogether;
  {
    const Launch merge =
        row_launch("attention merge", "merge_state_kernel", layer, tokens, heads_ * latent);
    const Op op(tools_.launch, "merge_state", profile::kFloat(tokens, heads_, latent));
    tools_.launch(merge, tokens * blocks, [=, this, &absorbed](std::int64_t piece, int) {
      const std::int64_t t = piece / blocks, first = piece % blocks * kHeadsTogether;
      const std::int64_t end = std::min(first + kHeadsTogether, heads_);
      attention_.settle(t, first, end);
      for (std::int64_t head = first; head < end; ++head)
        head_input(v_in_, absorbed.v_b[static_cast<std::size_t>(head)], head, tokens)
            .prepare(tools_.kernels, attention_.out(t) + head * latent, t);
    });
  }
  tools_.linear.each("v_b", layer, heads_, [=, this, &absorbed](std::int64_t head) {
    const Matrix& v_b = absorbed.v_b[static_cast<std::size_t>(head)];
    return LinearTask{&v_b, head_input(v_in_, v_b, head, tokens).of(v_b), values_ + head * v,
                      heads_ * v};
  });
  const Input o_in(o_in_, tokens, {&w.o});
  const Activations kind = o_in.of(w.o).kind;
  {
    const Launch ready = row_launch("o input", prepare_symbol(kind), layer, tokens, heads_ * v);
    const PrepareOp op(tools_.launch, kind, tokens, heads_ * v);
    tools_.launch(ready, tokens, [=, this](std::int64_t t, int) {
      o_in.prepare(tools_.kernels, values_ + t * heads_ * v, t);
    });
  }
  tools_.linear("o", layer, {{&w.o, o_in.of(w.o), y, config_.hidden}});
}

}  // namespace culprit::lab
