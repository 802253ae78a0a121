// The MLP of a layer: dense, or a mixture of experts with its shared expert. Tokens are grouped by
// expert, so that a step reads each expert's weights once however many tokens chose it; the shared
// expert is one more group, of all tokens with weight 1, and a dense layer is that group alone.
// Each token adds up its experts in the order of its own choice, whoever else is in the batch; those
// that other ranks hold it leaves to them.
// Router: sigmoid or softmax, biased choice, groups, scale (SGLang topk.py, biased_grouped_topk).
#pragma once

#include "lab/engine/step.h"
#include "lab/model/weights.h"

namespace culprit::lab {

class MlpBlock {
 public:
  MlpBlock(const Weights& weights, Tools& tools, const StepLimits& limits);
  void carve(Carver& carver);
  // x [rows, hidden], normalised -> y [rows, hidden].
  void operator()(int layer, std::int64_t tokens, const float* x, float* y);

 private:
  struct Group {  // the tokens of one expert: pairs [first, first + count)
    const Mlp* mlp = nullptr;
    std::int64_t first = 0, count = 0;
  };
  void route(int layer, std::int64_t tokens, const float* x);
  void align(int layer, std::int64_t tokens);
  void run_groups(int layer, std::int64_t tokens, const float* x);
  void activate(int layer, std::int64_t pairs, std::int64_t width);
  void combine(int layer, std::int64_t tokens, float* y);
  const Mlp& for_all(const LayerWeights& layer) const {  // the group of all tokens; may be empty
    return layer.experts.empty() ? layer.dense : layer.shared;
  }
  std::int64_t pairs_of(const LayerWeights& layer, std::int64_t tokens) const;
  Gemm gemm_of(const LayerWeights& layer, std::int64_t pairs, bool down) const;
  // On the stream.
  void group(const LayerWeights& layer, std::int64_t tokens);
  void plan_groups();
  std::int64_t each_pair(Launch& launch, std::int64_t width) const;
  Input gate_up_input(const Group& group) const;
  Input down_input(const Group& group) const;

  const Weights& weights_;
  const ModelConfig& config_;
  Tools& tools_;
  StepLimits limits_;
  std::int64_t most_pairs_ = 0, most_groups_ = 0, widest_ = 0;  // the widest intermediate
  std::byte *router_in_ = nullptr, *in_ = nullptr, *down_in_ = nullptr;
  float *logits_ = nullptr, *chosen_weights_ = nullptr;  // [rows, experts], [rows, per_token]
  std::int32_t* chosen_ = nullptr;                       // [rows, per_token]
  std::int64_t *pair_ = nullptr,
               *next_ = nullptr;  // [rows, per_token] its pair or kElsewhere; [experts]
  std::int64_t *token_of_ = nullptr, *group_of_ = nullptr;  // [pairs]
  float *gate_up_ = nullptr, *out_ = nullptr;               // [pairs, 2 x widest], [pairs, hidden]
  // Of the layer that the stream is in.
  Group* group_ = nullptr;  // [groups]; that of all tokens comes first
  std::size_t groups_ = 0;
  std::int64_t pairs_ = 0;  // of this rank
  LinearPlan gate_up_plan_, down_plan_;
};

}  // namespace culprit::lab
