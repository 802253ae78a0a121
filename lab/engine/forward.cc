#include "lab/engine/forward.h"

#include <algorithm>

namespace culprit::lab {
namespace {

bool is_mla(const Weights& weights) { return weights.config.family == Family::kMla; }

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
      mlp_(weights, tools_, limits) {
  if (ranks != nullptr) {
    std::string members;
    for (int rank = 0; rank < ranks->size(); ++rank)
      members += (rank == 0 ? "[" : ", ") + std::to_string(rank);
    sum_ = {"allreduce", ranks->size(), profile::Name::lasting(ranks->group()),
            profile::intern(members + "]")};
    gather_ = sum_;
    gather_.collective = "_allgather_base";
  }
  if (!launch.faults().dequantize) return;
  for (const LayerWeights& layer : weights.layers) {
    const MlaWeights& mla = layer.mla;
    const GqaWeights& gqa = layer.gqa;
    tools_.linear.unpack_before_use(
        {&mla.q_a, &mla.q_b, &mla.kv_a, &mla.o, &gqa.q, &gqa.k, &gqa.v, &gqa.o});
  }
}

std::int64_t Forward::carve(Carver carver) {
  rows_ = carver.take<StepRow>(limits_.rows);
  rope_.carve(carver, limits_.rows);
  tools_.linear.carve(carver);
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

StepRows Forward::bring_in(Launcher& launch, std::span<const StepRow> rows) {
  const Op op(launch, "aten::copy_", profile::kInt32(rows.size()), profile::kInt32(rows.size()));
  launch.copy(profile::kCopyIn, rows_, rows.data(),
              static_cast<std::int64_t>(rows.size() * sizeof(StepRow)));
  return {rows, rows_};
}

void Forward::operator()(const StepRows& rows) {
  const std::int64_t tokens = rows.tokens();
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
    if (tools_.launch.faults().sync_per_layer) tools_.launch.synchronize();
  }
  head(rows);
}

void Forward::embed(const StepRows& rows) {
  const std::int64_t tokens = rows.tokens();
  const Matrix& table = weights_.embedding;
  Launch launch = row_launch("embedding", "embedding_kernel", -1, tokens, config_.hidden);
  launch.format = format_name(table.format);
  launch.read = tokens * table.row_bytes();
  const Op op(tools_.launch, "aten::embedding", dtype_of(table.format)(table.rows, table.cols),
              profile::kInt32(tokens));
  const std::int64_t held = table.rows;  // of the vocabulary, by this rank
  const std::int64_t first = ranks_ != nullptr ? ranks_->rank() * held : 0;
  tools_.launch(launch, tokens, [=, this](std::int64_t t, int) {
    const StepRow& row = rows[t];
    float* x = x_ + t * config_.hidden;
    if (row.token >= first && row.token < first + held)
      dequantize_row(weights_.embedding, row.token - first, x);
    else
      std::fill(x, x + config_.hidden, 0.0F);
    rope_.set(t, row.position);
    if (mla_) mla_->begin(t, row);
    if (gqa_) gqa_->begin(t, row);
  });
  all_reduce("all-reduce embedding", -1, tokens, x_);
  y_pending_ = false;
}

void Forward::normalise(std::string_view kernel, int layer, const Norm& gains, std::int64_t tokens,
                        const Input& in) {
  if (tools_.launch.faults().small_kernels) return normalise_by_parts(layer, gains, tokens, in);
  const std::int64_t hidden = config_.hidden;
  const bool adds = y_pending_;
  const Op op(tools_.launch, "fused_add_rmsnorm", profile::kFloat(tokens, hidden),
              profile::kFloat(tokens, hidden), profile::kFloat(hidden));
  const std::int64_t rows = std::max(tokens, tools_.launch.faults().grid_rows);
  tools_.launch(row_launch(kernel, "fused_add_rms_norm_kernel", layer, tokens, hidden), rows,
                [=, this, &gains](std::int64_t t, int) {
                  if (t >= tokens) return;
                  float* x = x_ + t * hidden;
                  if (adds) tools_.kernels.add_scaled(y_ + t * hidden, 1, hidden, x);
                  float* normed = normed_ + t * hidden;
                  tools_.kernels.rms_norm(x, gains.data(), static_cast<float>(config_.rms_eps),
                                          hidden, normed);
                  in.prepare(tools_.kernels, normed, t);
                });
  y_pending_ = false;
}

// The same, a kernel for each operator of the model's own code.
void Forward::normalise_by_parts(int layer, const Norm& gains, std::int64_t tokens,
                                 const Input& in) {
  const std::int64_t hidden = config_.hidden;
  const auto shape = profile::kFloat(tokens, hidden);
  if (y_pending_) {
    const Op op(tools_.launch, "aten::add_", shape, shape);
    tools_.launch(
        row_launch("residual", "vectorized_elementwise_kernel<add>", layer, tokens, hidden), tokens,
        [=, this](std::int64_t t, int) {
          tools_.kernels.add_scaled(y_ + t * hidden, 1, hidden, x_ + t * hidden);
        });
  }
  y_pending_ = false;
  {
    const Op op(tools_.launch, "rmsnorm", shape, profile::kFloat(hidden));
    tools_.launch(row_launch("norm", "rms_norm_kernel", layer, tokens, hidden), tokens,
                  [=, this, &gains](std::int64_t t, int) {
                    tools_.kernels.rms_norm(x_ + t * hidden, gains.data(),
                                            static_cast<float>(config_.rms_eps), hidden,
                                            normed_ + t * hidden);
                  });
  }
  const Op op(tools_.launch, "aten::copy_", shape, shape);
  tools_.launch(
      row_launch("norm output", prepare_symbol(Activations::kFloat), layer, tokens, hidden), tokens,
      [=, this](std::int64_t t, int) { in.prepare(tools_.kernels, normed_ + t * hidden, t); });
}

void Forward::attention(int layer, const StepRows& rows) {
  const std::int64_t tokens = rows.tokens();
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
  Launch launch = row_launch(kernel, "all_reduce_sum_f32", layer, tokens, config_.hidden);
  launch.sending = &sum_;
  const Op op(tools_.launch, "c10d::allreduce_", profile::kFloat(tokens, config_.hidden));
  tools_.launch(launch, 1, [=, this](std::int64_t, int) { ranks_->all_reduce(values, count); });
}

// The norm and the vocabulary's scores of the rows that want them.
void Forward::head(const StepRows& rows) {
  const std::int64_t hidden = config_.hidden, wanted = rows.wanted();
  if (wanted == 0) return;
  const Input in(head_in_, wanted, {&weights_.lm_head});
  const bool adds = y_pending_;
  {
    const Op op(tools_.launch, "fused_add_rmsnorm", profile::kFloat(wanted, hidden),
                profile::kFloat(wanted, hidden), profile::kFloat(hidden));
    tools_.launch(row_launch("final norm", "fused_add_rms_norm_kernel", -1, wanted, hidden), 1,
                  [=, this](std::int64_t, int) {
                    std::int64_t next = 0;
                    for (std::int64_t t = 0; t < rows.tokens(); ++t) {
                      if (!rows[t].logits) continue;
                      float* x = x_ + t * hidden;
                      if (adds) tools_.kernels.add_scaled(y_ + t * hidden, 1, hidden, x);
                      float* normed = normed_ + next * hidden;
                      tools_.kernels.rms_norm(x, weights_.norm.data(),
                                              static_cast<float>(config_.rms_eps), hidden, normed);
                      in.prepare(tools_.kernels, normed, next++);
                    }
                  });
  }
  score(in.of(weights_.lm_head));
  if (ranks_ != nullptr) gather_logits(wanted);
}

void Forward::score(const Batch& all) {
  const Matrix& head = weights_.lm_head;
  if (!tools_.launch.faults().head_per_request)
    return tools_.linear("lm_head", -1, {{&head, all, own_logits_, head.rows}});
  for (std::int64_t row = 0; row < all.tokens; ++row) {
    Batch one = all;
    one.tokens = 1;
    one.data = all.token(row);
    tools_.linear("lm_head", -1, {{&head, one, own_logits_ + row * head.rows, head.rows}});
  }
}

// The parts of the vocabulary, side by side.
void Forward::gather_logits(std::int64_t wanted) {
  const std::int64_t part = weights_.lm_head.rows, all = vocab();
  Launch launch = row_launch("all-gather logits", "all_gather_f32", -1, wanted, all);
  launch.read = wanted * part * 4;
  launch.cols = part;
  launch.sending = &gather_;
  const Op op(tools_.launch, "c10d::_allgather_base_", profile::kFloat(wanted, all),
              profile::kFloat(wanted, part));
  tools_.launch(launch, 1, [=, this](std::int64_t, int) {
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
