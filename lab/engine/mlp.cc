#include "lab/engine/mlp.h"

#include <algorithm>

#include "lab/kernels/choose.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kElsewhere = -1;  // the pair of an expert that this rank does not hold

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

MlpBlock::MlpBlock(const Weights& weights, Tools& tools, const StepLimits& limits)
    : weights_(weights), config_(weights.config), tools_(tools), limits_(limits) {
  const Router& router = config_.router;
  most_pairs_ = limits.rows * (1 + router.per_token);
  most_groups_ = 1 + std::min(router.experts, limits.rows * router.per_token);
  for (const LayerWeights& layer : weights.layers) {
    for (const Mlp& expert : layer.experts) widest_ = std::max(widest_, expert.gate.rows);
    widest_ = std::max({widest_, layer.dense.gate.rows, layer.shared.gate.rows});
  }
}

void MlpBlock::carve(Carver& carver) {
  const Router& router = config_.router;
  router_in_ = carver.take<std::byte>(Input::bytes(limits_.rows, config_.hidden, 1));
  in_ = carver.take<std::byte>(Input::bytes(most_pairs_, config_.hidden, 2));
  down_in_ = carver.take<std::byte>(Input::bytes(most_pairs_, widest_, 1));
  logits_ = carver.take<float>(limits_.rows * router.experts);
  chosen_weights_ = carver.take<float>(limits_.rows * router.per_token);
  chosen_ = carver.take<std::int32_t>(limits_.rows * router.per_token);
  pair_ = carver.take<std::int64_t>(limits_.rows * router.per_token);
  next_ = carver.take<std::int64_t>(router.experts);
  token_of_ = carver.take<std::int64_t>(most_pairs_);
  group_of_ = carver.take<std::int64_t>(most_pairs_);
  gate_up_ = carver.take<float>(most_pairs_ * 2 * widest_);
  out_ = carver.take<float>(most_pairs_ * config_.hidden);
  group_ = carver.take<Group>(most_groups_);
  gate_up_plan_.carve(carver, 2 * most_groups_);
  down_plan_.carve(carver, most_groups_);
}

void MlpBlock::operator()(int layer, std::int64_t tokens, const float* x, float* y) {
  if (!weights_.layers[at(layer)].experts.empty()) {
    route(layer, tokens, x);
    align(layer, tokens);
  }
  run_groups(layer, tokens, x);
  combine(layer, tokens, y);
}

void MlpBlock::route(int layer, std::int64_t tokens, const float* x) {
  const LayerWeights& w = weights_.layers[at(layer)];
  const Router& router = config_.router;
  const Input in(router_in_, tokens, {&w.router});
  {
    const Activations kind = in.of(w.router).kind;
    const PrepareOp op(tools_.launch, kind, tokens, config_.hidden);
    tools_.launch(
        row_launch("router input", prepare_symbol(kind), layer, tokens, config_.hidden), tokens,
        [=, this](std::int64_t t, int) { in.prepare(tools_.kernels, x + t * config_.hidden, t); });
  }
  tools_.linear("router", layer, {{&w.router, in.of(w.router), logits_, router.experts}});
  const Routing routing{.experts = router.experts,
                        .per_token = router.per_token,
                        .groups = router.groups,
                        .groups_kept = router.groups_kept,
                        .sigmoid = router.scoring == Scoring::kSigmoid,
                        .normalized = router.normalized,
                        .scale = static_cast<float>(router.scale)};
  const float* bias = router.biased ? w.bias.data() : nullptr;
  const Op op(tools_.launch, "grouped_topk", profile::kFloat(tokens, router.experts));
  tools_.launch(row_launch("router top-k", "grouped_topk_kernel", layer, tokens, router.experts),
                tokens, [=, this](std::int64_t t, int) {
                  const Router& its = config_.router;
                  lab::route(routing, logits_ + t * its.experts, bias, chosen_ + t * its.per_token,
                             chosen_weights_ + t * its.per_token);
                });
}

// Which pairs are whose, and what the experts' launches will do: decided by what was chosen.
void MlpBlock::align(int layer, std::int64_t tokens) {
  const LayerWeights& w = weights_.layers[at(layer)];
  const std::int64_t each = config_.router.per_token, pairs = pairs_of(w, tokens);
  Launch launch = row_launch("moe align", "moe_align_block_size_kernel", layer, tokens, each);
  launch.written = pairs * 2 * static_cast<std::int64_t>(sizeof(std::int64_t));
  const Op op(tools_.launch, "moe_align_block_size", profile::kInt32(tokens, each));
  tools_.launch(launch, 1, [=, this, &w](std::int64_t, int) {
    group(w, tokens);
    plan_groups();
  });
}

// Pairs of token and expert: every token has as many, on all ranks that share the experts together.
std::int64_t MlpBlock::pairs_of(const LayerWeights& layer, std::int64_t tokens) const {
  const std::int64_t all = for_all(layer).gate.empty() ? 0 : 1;
  return tokens * (all + (layer.experts.empty() ? 0 : config_.router.per_token));
}

// Sorted by expert; those of the group of all tokens first.
void MlpBlock::group(const LayerWeights& layer, std::int64_t tokens) {
  const Mlp& all = for_all(layer);
  const std::int64_t shared = all.gate.empty() ? 0 : tokens;
  std::int64_t pairs = shared;
  groups_ = 0;
  if (shared > 0) group_[groups_++] = {&all, 0, tokens};
  for (std::int64_t pair = 0; pair < shared; ++pair) {
    token_of_[pair] = pair;
    group_of_[pair] = 0;
  }
  pairs_ = pairs;
  if (layer.experts.empty()) return;
  const std::int64_t experts = config_.router.experts, each = config_.router.per_token;
  std::fill(next_, next_ + experts, 0);
  for (std::int64_t i = 0; i < tokens * each; ++i) ++next_[chosen_[i]];
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::int64_t count = next_[expert];
    const bool held = !layer.experts[at(expert)].gate.empty();
    next_[expert] = held ? pairs : kElsewhere;
    if (count == 0 || !held) continue;
    for (std::int64_t i = 0; i < count; ++i)
      group_of_[pairs + i] = static_cast<std::int64_t>(groups_);
    group_[groups_++] = {&layer.experts[at(expert)], pairs, count};
    pairs += count;
  }
  for (std::int64_t i = 0; i < tokens * each; ++i) {
    pair_[i] = next_[chosen_[i]];
    if (pair_[i] == kElsewhere) continue;
    ++next_[chosen_[i]];
    token_of_[pair_[i]] = i / each;
  }
  pairs_ = pairs;
}

// Rows of `width` floats, one for each pair that this rank has: completes the launch.
std::int64_t MlpBlock::each_pair(Launch& launch, std::int64_t width) const {
  launch.tokens = pairs_;
  launch.read = launch.written = pairs_ * width * 4;
  return pairs_;
}

Input MlpBlock::gate_up_input(const Group& group) const {
  return Input(in_ + group.first * Input::bytes(1, config_.hidden, 2), group.count,
               {&group.mlp->gate, &group.mlp->up});
}
Input MlpBlock::down_input(const Group& group) const {
  return Input(down_in_ + group.first * Input::bytes(1, widest_, 1), group.count,
               {&group.mlp->down});
}

void MlpBlock::plan_groups() {
  const std::int64_t stride = 2 * widest_;
  gate_up_plan_.clear();
  down_plan_.clear();
  for (std::size_t g = 0; g < groups_; ++g) {
    const Group& group = group_[g];
    const Mlp& mlp = *group.mlp;
    const Input in = gate_up_input(group);
    float* to = gate_up_ + group.first * stride;
    gate_up_plan_.add({&mlp.gate, in.of(mlp.gate), to, stride});
    gate_up_plan_.add({&mlp.up, in.of(mlp.up), to + widest_, stride});
    down_plan_.add({&mlp.down, down_input(group).of(mlp.down), out_ + group.first * config_.hidden,
                    config_.hidden});
  }
}

// As a recorder shows it: the matrices of all experts, though a step reads those that were chosen.
Gemm MlpBlock::gemm_of(const LayerWeights& layer, std::int64_t pairs, bool down) const {
  const bool dense = layer.experts.empty();
  const auto held = std::find_if(layer.experts.begin(), layer.experts.end(),
                                 [](const Mlp& expert) { return !expert.gate.empty(); });
  const Mlp& one = held == layer.experts.end() ? layer.dense : *held;
  const Matrix& matrix = down ? one.down : one.gate;
  return {.kind = dense ? Gemm::Kind::kPlain : Gemm::Kind::kExperts,
          .count = dense ? 1
                         : std::count_if(held, layer.experts.end(),
                                         [](const Mlp& expert) { return !expert.gate.empty(); }),
          .tokens = pairs,
          .rows = (down ? 1 : 2) * matrix.rows,
          .cols = matrix.cols,
          .format = matrix.format,
          .input = activations_for(matrix)};
}

void MlpBlock::run_groups(int layer, std::int64_t tokens, const float* x) {
  const LayerWeights& w = weights_.layers[at(layer)];
  const bool dense = w.experts.empty();
  const std::int64_t pairs = pairs_of(w, tokens), hidden = config_.hidden;
  const Gemm gate_up = gemm_of(w, pairs, false);
  {
    // A dense layer has nothing to decide, and no launch of its own for that.
    const auto prepare = [=, this, &w](Launch& launch) {
      if (dense) group(w, tokens);
      if (dense) plan_groups();
      return each_pair(launch, hidden);
    };
    const PrepareOp op(tools_.launch, gate_up.input, pairs, hidden);
    tools_.launch(
        row_launch(dense ? "mlp input" : "expert input",
                   dense ? prepare_symbol(gate_up.input) : profile::Name("moe_permute_kernel"),
                   layer, pairs, hidden),
        prepare, [=, this](std::int64_t pair, int) {
          const Group& group = group_[group_of_[pair]];
          gate_up_input(group).prepare(tools_.kernels, x + token_of_[pair] * config_.hidden,
                                       pair - group.first);
        });
  }
  tools_.linear(dense ? "mlp gate_up" : "expert gate_up", layer, gate_up_plan_, gate_up);
  activate(layer, pairs, gate_up.rows);
  tools_.linear(dense ? "mlp down" : "expert down", layer, down_plan_, gemm_of(w, pairs, true));
}

void MlpBlock::activate(int layer, std::int64_t pairs, std::int64_t width) {
  const std::int64_t stride = 2 * widest_;
  const bool parts = tools_.launch.faults().small_kernels;
  {
    const Op op(tools_.launch, "silu_and_mul", profile::kFloat(pairs, width));
    tools_.launch(
        row_launch("silu_mul", "silu_and_mul_kernel", layer, pairs, widest_),
        [this](Launch& launch) { return each_pair(launch, widest_); },
        [=, this](std::int64_t pair, int) {
          const Group& group = group_[group_of_[pair]];
          float* gate = gate_up_ + pair * stride;
          tools_.kernels.silu_mul(gate, gate + widest_, group.mlp->gate.rows, gate);
          if (!parts) down_input(group).prepare(tools_.kernels, gate, pair - group.first);
        });
  }
  if (!parts) return;
  const Op op(tools_.launch, "aten::copy_", profile::kFloat(pairs, widest_),
              profile::kFloat(pairs, widest_));
  tools_.launch(
      row_launch("down input", prepare_symbol(Activations::kFloat), layer, pairs, widest_), pairs,
      [=, this](std::int64_t pair, int) {
        const Group& group = group_[group_of_[pair]];
        down_input(group).prepare(tools_.kernels, gate_up_ + pair * stride, pair - group.first);
      });
}

void MlpBlock::combine(int layer, std::int64_t tokens, float* y) {
  const LayerWeights& w = weights_.layers[at(layer)];
  const std::int64_t hidden = config_.hidden;
  const std::int64_t each = w.experts.empty() ? 0 : config_.router.per_token;
  const bool shared = !for_all(w).gate.empty();
  Launch launch = row_launch(
      "combine", each > 0 ? profile::Name("moe_sum_kernel") : prepare_symbol(Activations::kFloat),
      layer, tokens, hidden);
  launch.read = pairs_of(w, tokens) * hidden * 4;
  const Op op(tools_.launch, each > 0 ? profile::Name("moe_sum") : profile::Name("aten::copy_"),
              profile::kFloat(tokens, hidden), profile::kFloat(tokens, hidden));
  tools_.launch(launch, tokens, [=, this](std::int64_t t, int) {
    float* sum = y + t * hidden;
    if (shared)
      std::copy(out_ + t * hidden, out_ + (t + 1) * hidden, sum);
    else
      std::fill(sum, sum + hidden, 0.0F);
    for (std::int64_t i = t * each; i < (t + 1) * each; ++i)
      if (pair_[i] != kElsewhere)
        tools_.kernels.add_scaled(out_ + pair_[i] * hidden, chosen_weights_[i], hidden, sum);
  });
}

}  // namespace culprit::lab
