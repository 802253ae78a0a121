// The decode step as its papers write it, in float64 and without a clever idea: what every faster
// engine is held against. MLA is not absorbed (kv_b expands each cached row to keys and values of all heads), attention is a
// softmax over all cached rows, experts run one by one, one token at a time.
// Rounding happens only where a format makes it part of the model: NVFP4 activations (input_scale),
// rows of a pool, and the indexer's keys, which are E4M3 with one scale per row in any pool.
// Cost per token: every weight, and the keys and values of all tokens before it. For small models.
// Formulas: modular_glm_moe_dsa.py of transformers; SGLang deepseek_v2.py and topk.py.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lab/model/weights.h"

namespace culprit::lab {

class Oracle {
 public:
  using Vector = std::vector<double>;
  struct Expanded {
    Vector keys, values;  // [heads, nope_dim], [heads, v_dim]
  };
  struct Layer {               // what one layer remembers, a vector per token
    std::vector<Vector> keys;  // kMla: latent | roped key; kGqa: kv_heads x head_dim
    std::vector<Vector> values, index_keys;
    std::vector<Expanded> expanded;  // kMla: kv_b of each row
  };
  struct Sequence {
    std::vector<Layer> layers;
    std::int64_t length = 0;
  };
  enum class Pool : std::uint8_t { kExact, kBf16, kE4m3 };

  // The weights must outlive it. Keeps each matrix as doubles.
  explicit Oracle(const Weights& weights, Pool pool = Pool::kExact)
      : weights_(weights), pool_(pool) {}

  Sequence begin() const { return {std::vector<Layer>(weights_.layers.size()), 0}; }
  // Appends a token; the logits of the token after it. Tokens lie in [0, embedding rows).
  Vector next(Sequence& sequence, std::int32_t token);

  // The parts, for tests.
  Vector linear(const Matrix& matrix, const Vector& x);
  Vector mlp(const Mlp& weights, const Vector& x);
  struct Choice {
    std::int64_t expert = 0;
    double weight = 0;
  };
  static std::vector<Choice> route(const Router& router, const Vector& logits,
                                   const std::vector<float>& bias);

 private:
  const Vector& dense(const Matrix& matrix);  // [rows, cols]
  Vector moe(const LayerWeights& layer, const Vector& x);
  Vector attend(const LayerWeights& layer, Layer& cache, const Vector& x, std::int64_t position);
  Vector attend_mla(const MlaWeights& layer, Layer& cache, const Vector& x, std::int64_t position);
  Vector attend_gqa(const GqaWeights& layer, Layer& cache, const Vector& x, std::int64_t position);
  Expanded expand(const MlaWeights& layer, const Vector& row, std::int64_t heads);
  std::vector<std::int64_t> chosen_positions(const IndexerWeights& indexer, Layer& cache,
                                             const Vector& x, const Vector& q_residual,
                                             std::int64_t position);
  Vector stored(Vector row) const;  // as the pool gives it back

  const Weights& weights_;
  Pool pool_;
  std::map<const std::byte*, Vector> dense_;
};

}  // namespace culprit::lab
