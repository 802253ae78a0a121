#include "lab/model/weights.h"

namespace culprit::lab {

std::vector<Matrix*> matrices_of(Weights& weights) {
  std::vector<Matrix*> all;
  const auto add = [&](auto&... matrices) {
    (void(matrices.empty() ? void() : all.push_back(&matrices)), ...);
  };
  for (LayerWeights& layer : weights.layers) {
    MlaWeights& mla = layer.mla;
    GqaWeights& gqa = layer.gqa;
    add(mla.q_a, mla.q_b, mla.kv_a, mla.kv_b, mla.k_b, mla.v_b, mla.o);
    add(mla.indexer.q_b, mla.indexer.k, mla.indexer.weights);
    add(gqa.q, gqa.k, gqa.v, gqa.o);
    add(layer.router, layer.dense.gate, layer.dense.up, layer.dense.down);
    add(layer.shared.gate, layer.shared.up, layer.shared.down);
    for (Mlp& expert : layer.experts) add(expert.gate, expert.up, expert.down);
  }
  add(weights.lm_head);
  return all;
}

}  // namespace culprit::lab
