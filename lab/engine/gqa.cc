#include "lab/engine/gqa.h"

#include <algorithm>

namespace culprit::lab {
namespace {

HeadLayout layout_of(const Weights& weights) {
  const std::int64_t dim = weights.config.head_dim;
  const std::int64_t kv_heads = weights.layers.front().gqa.k.rows / dim;
  return {.heads = weights.layers.front().gqa.q.rows / dim,
          .groups = kv_heads,
          .width = dim,
          .value_width = dim,
          .key_step = dim,
          .value_at = kv_heads * dim,
          .value_step = dim,
          .scale = static_cast<float>(weights.config.softmax_scale())};
}

}  // namespace

GqaBlock::GqaBlock(const Weights& weights, Tools& tools, Pool& pool, Reading reading,
                   const StepLimits& limits)
    : weights_(weights),
      config_(weights.config),
      tools_(tools),
      pool_(pool),
      limits_(limits),
      heads_(layout_of(weights).heads),
      kv_heads_(layout_of(weights).groups),
      attention_(tools.kernels, tools.launch, pool, layout_of(weights), reading,
                 {limits.rows, std::min(limits.requests * limits.longest, pool.shape().tokens)}) {}

void GqaBlock::carve(Carver& carver) {
  const std::int64_t rows = limits_.rows, dim = config_.head_dim;
  hidden_in_ = carver.take<std::byte>(Input::bytes(rows, config_.hidden, 3));
  o_in_ = carver.take<std::byte>(Input::bytes(rows, heads_ * dim, 1));
  q_ = carver.take<float>(rows * heads_ * dim);
  kv_ = carver.take<float>(rows * 2 * kv_heads_ * dim);
  reaches_ = carver.take<Reach>(rows);
  attention_.carve(carver);
}

Input GqaBlock::input(int layer, std::int64_t tokens) const {
  const GqaWeights& w = weights(layer);
  return Input(hidden_in_, tokens, {&w.q, &w.k, &w.v});
}

void GqaBlock::operator()(int layer, StepRows rows, const RopeTable& rope, const Input& in,
                          float* y) {
  const GqaWeights& w = weights(layer);
  const std::int64_t keys = kv_heads_ * config_.head_dim;
  tools_.linear("qkv", layer,
                {{&w.q, in.of(w.q), q_, heads_ * config_.head_dim},
                 {&w.k, in.of(w.k), kv_, 2 * keys},
                 {&w.v, in.of(w.v), kv_ + keys, 2 * keys}});
  store(layer, rows, rope);
  attention_(layer, {reaches_, static_cast<std::size_t>(rows.tokens())}, q_);
  back(layer, rows.tokens(), y);
}

void GqaBlock::positioned(const RopeTable& rope, std::int64_t token,
                          const std::vector<float>& gains, float* head) const {
  if (config_.qk_norm)
    tools_.kernels.rms_norm(head, gains.data(), static_cast<float>(config_.rms_eps),
                            config_.head_dim, head);
  tools_.kernels.rope(head, rope.cos(token), rope.sin(token), config_.head_dim,
                      config_.rope == RopeStyle::kHalfSplit);
}

void GqaBlock::store(int layer, StepRows rows, const RopeTable& rope) {
  const GqaWeights& w = weights(layer);
  const std::int64_t tokens = rows.tokens();
  const std::int64_t dim = config_.head_dim, width = 2 * kv_heads_ * dim;
  {
    const Op op(tools_.launch, "rotary_embedding", profile::kFloat(tokens, heads_, dim));
    tools_.launch(row_launch("q rope", "rotary_embedding_kernel", layer, tokens, heads_ * dim),
                  tokens, [=, this, &w, &rope](std::int64_t t, int) {
                    for (std::int64_t head = 0; head < heads_; ++head)
                      positioned(rope, t, w.q_norm, q_ + (t * heads_ + head) * dim);
                  });
  }
  const Launch launch{.kernel = "kv-store",
                      .symbol = "set_kv_buffer_kernel",
                      .format = pool_.format_name(),
                      .layer = layer,
                      .read = tokens * width * 4,
                      .written = tokens * pool_.shape().row_bytes(),
                      .tokens = tokens,
                      .rows = width,
                      .cols = width};
  const Op op(tools_.launch, "set_kv_buffer",
              dtype_of(pool_.shape().format)(pool_.shape().rows(), 1, width),
              profile::kFloat(tokens, 1, width));
  tools_.launch(launch, tokens, [=, this, &w, &rope](std::int64_t t, int) {
    const StepRow& row = rows[t];
    for (std::int64_t head = 0; head < kv_heads_; ++head)
      positioned(rope, t, w.k_norm, kv_ + t * width + head * dim);
    pool_.store(tools_.kernels, layer, row.slots[row.position], kv_ + t * width);
  });
}

void GqaBlock::back(int layer, std::int64_t tokens, float* y) {
  const GqaWeights& w = weights(layer);
  const Input o_in(o_in_, tokens, {&w.o});
  {
    const Op op(tools_.launch, "merge_state", profile::kFloat(tokens, heads_, config_.head_dim));
    tools_.launch(row_launch("attention merge", "merge_state_kernel", layer, tokens,
                             heads_ * config_.head_dim),
                  tokens, [=, this](std::int64_t t, int) {
                    attention_.settle(t, 0, heads_);
                    o_in.prepare(tools_.kernels, attention_.out(t), t);
                  });
  }
  tools_.linear("o", layer, {{&w.o, o_in.of(w.o), y, config_.hidden}});
}

}  // namespace culprit::lab
