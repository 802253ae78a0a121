// Absorbed MLA: queries go to the latent space (k_b), attend to the cached rows there as one shared
// head would, and the result comes back per head (v_b). With an indexer (DSA), tokens whose context is
// longer than its top_k attend to the positions it picks only.
// Source: SGLang deepseek_v2.py (forward_absorb), modular_glm_moe_dsa.py.
#pragma once

#include <memory>

#include "lab/engine/absorbed.h"
#include "lab/engine/attention.h"
#include "lab/engine/step.h"
#include "lab/model/weights.h"

namespace culprit::lab {

class MlaBlock {
 public:
  static Result<std::unique_ptr<MlaBlock>> make(const Weights& weights, Tools& tools, Pool& pool,
                                                Reading reading, const StepLimits& limits);
  void carve(Carver& carver);

  // On the stream, for each row of a step and before all layers: what it attends to, unless a layer
  // picks.
  void begin(std::int64_t t, const StepRow& row) { reaches_[t] = {row.slots, row.position + 1}; }
  // Where the hidden states of `tokens` rows have to be made ready for layer `layer`.
  Input input(int layer, std::int64_t tokens) const;
  // From there to y [rows, hidden]; rows' keys go into the pool.
  void operator()(int layer, StepRows rows, const RopeTable& rope, const Input& in, float* y);

 private:
  MlaBlock(const Weights& weights, Tools& tools, Pool& pool, Reading reading,
           const StepLimits& limits, Absorbed absorbed);

  const MlaWeights& weights(int layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)].mla;
  }
  void store(int layer, StepRows rows, const RopeTable& rope);
  void store_index_key(int layer, const StepRow& row, const float* cos, const float* sin,
                       float* key);
  bool picks(const StepRows& rows) const;
  void queries(int layer, StepRows rows, const Input& in);
  void absorb(int layer, StepRows rows, const RopeTable& rope);
  void choose(int layer, StepRows rows, const RopeTable& rope);
  void score(int layer, StepRows rows);
  void pick(int layer, StepRows rows);
  void back(int layer, std::int64_t tokens, float* y);
  Input head_input(std::byte* buffer, const Matrix& reader, std::int64_t head,
                   std::int64_t tokens) const;

  const Weights& weights_;
  const ModelConfig& config_;
  Tools& tools_;
  Pool& pool_;
  StepLimits limits_;
  std::int64_t heads_, q_rank_;
  Absorbed absorbed_;
  Attention attention_;
  // Buffers, [rows, ...] each.
  std::byte *hidden_in_ = nullptr, *q_in_ = nullptr, *k_in_ = nullptr, *v_in_ = nullptr,
            *o_in_ = nullptr;
  float *q_a_ = nullptr, *kv_ = nullptr, *q_ = nullptr, *latent_q_ = nullptr, *values_ = nullptr;
  float *index_key_ = nullptr, *index_weights_ = nullptr, *index_q_ = nullptr,
        *index_scores_ = nullptr;
  std::int32_t* picked_ = nullptr;  // [rows, top_k] slots
  Reach* reaches_ = nullptr;
  Cut cut_;
};

}  // namespace culprit::lab
