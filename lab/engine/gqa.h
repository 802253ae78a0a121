// Grouped-query attention: rotated (and, in Qwen3, first normalised) queries and keys; a pool row is
// all keys of a token, then all its values.
#pragma once

#include "lab/engine/attention.h"
#include "lab/engine/step.h"
#include "lab/model/weights.h"

namespace culprit::lab {

class GqaBlock {
 public:
  GqaBlock(const Weights& weights, Tools& tools, Pool& pool, Reading reading,
           const StepLimits& limits);
  void carve(Carver& carver);
  // On the stream, for each row of a step and before all layers: what it attends to, unless a layer
  // picks.
  void begin(std::int64_t t, const StepRow& row) { reaches_[t] = {row.slots, row.position + 1}; }
  // Where the hidden states of `tokens` rows have to be made ready for layer `layer`.
  Input input(int layer, std::int64_t tokens) const;
  // From there to y [rows, hidden]; rows' keys and values go into the pool.
  void operator()(int layer, StepRows rows, const RopeTable& rope, const Input& in, float* y);

 private:
  const GqaWeights& weights(int layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)].gqa;
  }
  void positioned(const RopeTable& rope, std::int64_t token, const std::vector<float>& gains,
                  float* head) const;
  void store(int layer, StepRows rows, const RopeTable& rope);
  void back(int layer, std::int64_t tokens, float* y);

  const Weights& weights_;
  const ModelConfig& config_;
  Tools& tools_;
  Pool& pool_;
  StepLimits limits_;
  std::int64_t heads_, kv_heads_;
  Attention attention_;
  std::byte *hidden_in_ = nullptr, *o_in_ = nullptr;
  float *q_ = nullptr, *kv_ = nullptr;  // [rows, heads, dim]; [rows, keys | values]
  Reach* reaches_ = nullptr;
};

}  // namespace culprit::lab
