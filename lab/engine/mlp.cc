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
  tasks_.resize(at(2 * most_groups_));
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
}

void MlpBlock::operator()(int layer, std::int64_t tokens, const float* x, float* y) {
  const LayerWeights& w = weights_.layers[at(layer)];
  if (!w.experts.empty()) route(layer, tokens, x);
  group(w, tokens);
  run_groups(layer, x);
  combine(layer, tokens, y);
}

void MlpBlock::route(int layer, std::int64_t tokens, const float* x) {
  const LayerWeights& w = weights_.layers[at(layer)];
  const Router& router = config_.router;
  const Input in(router_in_, tokens, {&w.router});
  tools_.launch(
      row_launch("router input", layer, tokens, config_.hidden), tokens,
      [&](std::int64_t t, int) { in.prepare(tools_.kernels, x + t * config_.hidden, t); });
  tools_.linear("router", layer, {{&w.router, in.of(w.router), logits_, router.experts}});
  const Routing routing{.experts = router.experts,
                        .per_token = router.per_token,
                        .groups = router.groups,
                        .groups_kept = router.groups_kept,
                        .sigmoid = router.scoring == Scoring::kSigmoid,
                        .normalized = router.normalized,
                        .scale = static_cast<float>(router.scale)};
  const float* bias = router.biased ? w.bias.data() : nullptr;
  tools_.launch(
      row_launch("router top-k", layer, tokens, router.experts), tokens, [&](std::int64_t t, int) {
        lab::route(routing, logits_ + t * router.experts, bias, chosen_ + t * router.per_token,
                   chosen_weights_ + t * router.per_token);
      });
}

// Pairs of token and expert, sorted by expert; those of the group of all tokens first.
void MlpBlock::group(const LayerWeights& layer, std::int64_t tokens) {
  const Mlp& all = layer.experts.empty() ? layer.dense : layer.shared;
  shared_ = all.gate.empty() ? 0 : tokens;
  groups_ = 0;
  pairs_ = shared_;
  if (shared_ > 0) group_[groups_++] = {&all, 0, tokens};
  for (std::int64_t pair = 0; pair < shared_; ++pair) {
    token_of_[pair] = pair;
    group_of_[pair] = 0;
  }
  if (layer.experts.empty()) return;
  const std::int64_t experts = config_.router.experts, each = config_.router.per_token;
  std::fill(next_, next_ + experts, 0);
  for (std::int64_t i = 0; i < tokens * each; ++i) ++next_[chosen_[i]];
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::int64_t count = next_[expert];
    const bool held = !layer.experts[at(expert)].gate.empty();
    next_[expert] = held ? pairs_ : kElsewhere;
    if (count == 0 || !held) continue;
    for (std::int64_t i = 0; i < count; ++i)
      group_of_[pairs_ + i] = static_cast<std::int64_t>(groups_);
    group_[groups_++] = {&layer.experts[at(expert)], pairs_, count};
    pairs_ += count;
  }
  for (std::int64_t i = 0; i < tokens * each; ++i) {
    pair_[i] = next_[chosen_[i]];
    if (pair_[i] == kElsewhere) continue;
    ++next_[chosen_[i]];
    token_of_[pair_[i]] = i / each;
  }
}

Input MlpBlock::gate_up_input(const Group& group) const {
  return Input(in_ + group.first * Input::bytes(1, config_.hidden, 2), group.count,
               {&group.mlp->gate, &group.mlp->up});
}
Input MlpBlock::down_input(const Group& group) const {
  return Input(down_in_ + group.first * Input::bytes(1, widest_, 1), group.count,
               {&group.mlp->down});
}

void MlpBlock::run_groups(int layer, const float* x) {
  const bool dense = weights_.layers[at(layer)].experts.empty();
  tools_.launch(row_launch(dense ? "mlp input" : "expert input", layer, pairs_, config_.hidden),
                pairs_, [&](std::int64_t pair, int) {
                  const Group& group = group_[group_of_[pair]];
                  gate_up_input(group).prepare(tools_.kernels, x + token_of_[pair] * config_.hidden,
                                               pair - group.first);
                });
  const std::int64_t stride = 2 * widest_;
  for (std::size_t g = 0; g < groups_; ++g) {
    const Group& group = group_[g];
    const Input in = gate_up_input(group);
    float* to = gate_up_ + group.first * stride;
    tasks_[2 * g] = {&group.mlp->gate, in.of(group.mlp->gate), to, stride};
    tasks_[2 * g + 1] = {&group.mlp->up, in.of(group.mlp->up), to + widest_, stride};
  }
  tools_.linear(dense ? "mlp gate_up" : "expert gate_up", layer, {tasks_.data(), 2 * groups_});
  tools_.launch(row_launch("silu_mul", layer, pairs_, widest_), pairs_,
                [&](std::int64_t pair, int) {
                  const Group& group = group_[group_of_[pair]];
                  float* gate = gate_up_ + pair * stride;
                  tools_.kernels.silu_mul(gate, gate + widest_, group.mlp->gate.rows, gate);
                  down_input(group).prepare(tools_.kernels, gate, pair - group.first);
                });
  for (std::size_t g = 0; g < groups_; ++g) {
    const Group& group = group_[g];
    tasks_[g] = {&group.mlp->down, down_input(group).of(group.mlp->down),
                 out_ + group.first * config_.hidden, config_.hidden};
  }
  tools_.linear(dense ? "mlp down" : "expert down", layer, {tasks_.data(), groups_});
}

void MlpBlock::combine(int layer, std::int64_t tokens, float* y) {
  const std::int64_t hidden = config_.hidden;
  const std::int64_t each =
      weights_.layers[at(layer)].experts.empty() ? 0 : config_.router.per_token;
  Launch launch = row_launch("combine", layer, tokens, hidden);
  launch.read = pairs_ * hidden * 4;
  tools_.launch(launch, tokens, [&](std::int64_t t, int) {
    float* sum = y + t * hidden;
    if (shared_ > 0)
      std::copy(out_ + t * hidden, out_ + (t + 1) * hidden, sum);
    else
      std::fill(sum, sum + hidden, 0.0F);
    for (std::int64_t i = t * each; i < (t + 1) * each; ++i)
      if (pair_[i] != kElsewhere)
        tools_.kernels.add_scaled(out_ + pair_[i] * hidden, chosen_weights_[i], hidden, sum);
  });
}

}  // namespace culprit::lab
