#include "lab/engine/forward.h"

#include <algorithm>

namespace culprit::lab {
namespace {

bool is_mla(const Weights& weights) { return weights.config.family == Family::kMla; }

std::int64_t most_tasks(const Weights& weights, const StepLimits& limits) {
  const Router& router = weights.config.router;
  const std::int64_t experts = std::min(router.experts, limits.rows * router.per_token);
  return std::max<std::int64_t>({2 * (1 + experts), weights.config.heads, 4});
}

}  // namespace

PoolShape pool_shape(const Weights& weights) {
  const ModelConfig& config = weights.config;
  PoolShape shape;
  shape.layers = static_cast<std::int64_t>(weights.layers.size());
  shape.width = is_mla(weights) ? config.latent_dim() : 2 * weights.layers.front().gqa.k.rows;
  shape.index_dim = config.indexer.heads > 0 ? config.indexer.head_dim : 0;
  return shape;
}

Result<std::unique_ptr<Forward>> Forward::make(const Weights& weights, Pool& pool,
                                               const Kernels& kernels, Launcher& launch,
                                               Reading reading, const StepLimits& limits,
                                               Ranks* ranks) {
  auto forward =
      std::unique_ptr<Forward>(new Forward(weights, pool, kernels, launch, limits, ranks));
  if (is_mla(weights)) {
    TRY(forward->mla_, MlaBlock::make(weights, forward->tools_, pool, reading, limits));
  } else {
    forward->gqa_ = std::make_unique<GqaBlock>(weights, forward->tools_, pool, reading, limits);
  }
  TRY(forward->arena_, Arena::make(forward->carve(Carver(nullptr)), "the buffers of a step"));
  forward->carve(Carver(forward->arena_.data()));
  return forward;
}

Forward::Forward(const Weights& weights, Pool&, const Kernels& kernels, Launcher& launch,
                 const StepLimits& limits, Ranks* ranks)
    : weights_(weights),
      config_(weights.config),
      limits_(limits),
      ranks_(ranks),
      tools_{kernels, launch, Linear(kernels, launch)},
      rope_(config_, is_mla(weights) ? config_.rope_dim : config_.head_dim),
      mlp_(weights, tools_, limits) {}

std::int64_t Forward::carve(Carver carver) {
  tools_.linear.carve(carver, most_tasks(weights_, limits_));
  rope_.carve(carver, limits_.rows);
  if (mla_) mla_->carve(carver);
  if (gqa_) gqa_->carve(carver);
  mlp_.carve(carver);
  x_ = carver.take<float>(limits_.rows * config_.hidden);
  y_ = carver.take<float>(limits_.rows * config_.hidden);
  normed_ = carver.take<float>(limits_.rows * config_.hidden);
  head_in_ = carver.take<std::byte>(Input::bytes(limits_.logits, config_.hidden, 1));
  logits_ = own_logits_ = carver.take<float>(limits_.logits * weights_.lm_head.rows);
  if (ranks_ != nullptr) {
    logits_ = carver.take<float>(limits_.logits * vocab());
    gathered_ = carver.take<float>(limits_.logits * vocab());
  }
  return carver.bytes();
}

void Forward::operator()(StepRows rows) {
  const auto tokens = static_cast<std::int64_t>(rows.size());
  embed(rows);
  for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
    const auto layer = static_cast<int>(l);
    attention(layer, rows);
    all_reduce("all-reduce attention", layer, tokens, y_);
    y_pending_ = true;
    // The MLP makes its inputs ready itself, expert by expert.
    normalise("mlp norm", layer, weights_.layers[l].mlp_norm, tokens, Input(nullptr, 0, {}));
    mlp_(layer, tokens, normed_, y_);
    all_reduce("all-reduce mlp", layer, tokens, y_);
    y_pending_ = true;
  }
  head(rows);
}

void Forward::embed(StepRows rows) {
  const auto tokens = static_cast<std::int64_t>(rows.size());
  Launch launch = row_launch("embedding", -1, tokens, config_.hidden);
  launch.format = format_name(weights_.embedding.format);
  launch.read = tokens * weights_.embedding.row_bytes();
  const std::int64_t held = weights_.embedding.rows;  // of the vocabulary, by this rank
  const std::int64_t first = ranks_ != nullptr ? ranks_->rank() * held : 0;
  tools_.launch(launch, tokens, [&](std::int64_t t, int) {
    const StepRow& row = rows[static_cast<std::size_t>(t)];
    float* x = x_ + t * config_.hidden;
    if (row.token >= first && row.token < first + held)
      dequantize_row(weights_.embedding, row.token - first, x);
    else
      std::fill(x, x + config_.hidden, 0.0F);
    rope_.set(t, row.position);
  });
  all_reduce("all-reduce embedding", -1, tokens, x_);
  y_pending_ = false;
}

void Forward::normalise(std::string_view kernel, int layer, const Norm& gains, std::int64_t tokens,
                        const Input& in) {
  const std::int64_t hidden = config_.hidden;
  const bool adds = y_pending_;
  tools_.launch(row_launch(kernel, layer, tokens, hidden), tokens, [&](std::int64_t t, int) {
    float* x = x_ + t * hidden;
    if (adds) tools_.kernels.add_scaled(y_ + t * hidden, 1, hidden, x);
    float* normed = normed_ + t * hidden;
    tools_.kernels.rms_norm(x, gains.data(), static_cast<float>(config_.rms_eps), hidden, normed);
    in.prepare(tools_.kernels, normed, t);
  });
  y_pending_ = false;
}

void Forward::attention(int layer, StepRows rows) {
  const auto tokens = static_cast<std::int64_t>(rows.size());
  const Input in = mla_ ? mla_->input(layer, tokens) : gqa_->input(layer, tokens);
  const Norm& gains = weights_.layers[static_cast<std::size_t>(layer)].attention_norm;
  normalise("attention norm", layer, gains, tokens, in);
  if (mla_)
    (*mla_)(layer, rows, rope_, in, y_);
  else
    (*gqa_)(layer, rows, rope_, in, y_);
}

// Ranks add up values [tokens, hidden]. A rank by itself has its part only.
void Forward::all_reduce(std::string_view kernel, int layer, std::int64_t tokens, float* values) {
  if (ranks_ == nullptr) return;
  const std::int64_t count = tokens * config_.hidden;
  tools_.launch(row_launch(kernel, layer, tokens, config_.hidden), 1,
                [this, values, count](std::int64_t, int) { ranks_->all_reduce(values, count); });
}

// The norm and the vocabulary's scores of the rows that want them.
void Forward::head(StepRows rows) {
  const std::int64_t hidden = config_.hidden;
  std::int64_t wanted = 0;
  for (const StepRow& row : rows) wanted += row.logits ? 1 : 0;
  if (wanted == 0) return;
  const Input in(head_in_, wanted, {&weights_.lm_head});
  tools_.launch(row_launch("final norm", -1, wanted, hidden), 1, [&](std::int64_t, int) {
    std::int64_t next = 0;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      if (!rows[t].logits) continue;
      float* x = x_ + static_cast<std::int64_t>(t) * hidden;
      if (y_pending_)
        tools_.kernels.add_scaled(y_ + static_cast<std::int64_t>(t) * hidden, 1, hidden, x);
      float* normed = normed_ + next * hidden;
      tools_.kernels.rms_norm(x, weights_.norm.data(), static_cast<float>(config_.rms_eps), hidden,
                              normed);
      in.prepare(tools_.kernels, normed, next++);
    }
  });
  tools_.linear("lm_head", -1,
                {{&weights_.lm_head, in.of(weights_.lm_head), own_logits_, weights_.lm_head.rows}});
  if (ranks_ != nullptr) gather_logits(wanted);
}

// The parts of the vocabulary, side by side.
void Forward::gather_logits(std::int64_t wanted) {
  const std::int64_t part = weights_.lm_head.rows, all = vocab();
  Launch launch = row_launch("all-gather logits", -1, wanted, all);
  launch.read = wanted * part * 4;
  tools_.launch(launch, 1, [this, wanted, part, all](std::int64_t, int) {
    ranks_->all_gather(own_logits_, wanted * part, gathered_);
    for (std::int64_t rank = 0; rank < ranks_->size(); ++rank)
      for (std::int64_t row = 0; row < wanted; ++row)
        std::copy_n(gathered_ + (rank * wanted + row) * part, part,
                    logits_ + row * all + rank * part);
  });
}

std::span<const float> Forward::logits(std::int64_t index) const {
  return {logits_ + index * vocab(), static_cast<std::size_t>(vocab())};
}

}  // namespace culprit::lab
