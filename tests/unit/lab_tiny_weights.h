// Small models in F32, made of plain random numbers: for tests of the oracle and of identities.
#pragma once

#include <deque>
#include <random>
#include <vector>

#include "lab/model/weights.h"

namespace culprit::lab {

inline ModelConfig tiny_mla() {
  ModelConfig c;
  c.family = Family::kMla;
  c.hidden = 32;
  c.layers = 2;
  c.vocab = 48;
  c.max_positions = 4096;
  c.heads = c.kv_heads = 4;
  c.q_lora_rank = 24;
  c.kv_lora_rank = 32;
  c.nope_dim = 12;
  c.rope_dim = 8;
  c.v_dim = 20;
  c.intermediate = 40;
  c.moe_intermediate = 24;
  c.dense_layers = 1;
  c.router = {.experts = 8,
              .per_token = 3,
              .shared = 1,
              .groups = 4,
              .groups_kept = 2,
              .scoring = Scoring::kSigmoid,
              .biased = true,
              .normalized = true,
              .scale = 1.5};
  c.rope = RopeStyle::kInterleaved;
  return c;
}

inline ModelConfig tiny_gqa() {
  ModelConfig c;
  c.family = Family::kGqa;
  c.hidden = 32;
  c.layers = 2;
  c.vocab = 48;
  c.max_positions = 4096;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.intermediate = 40;
  c.moe_intermediate = 24;
  c.dense_layers = 1;
  c.qk_norm = true;
  c.router = {.experts = 6,
              .per_token = 2,
              .shared = 0,
              .groups = 1,
              .groups_kept = 1,
              .scoring = Scoring::kSoftmax,
              .biased = false,
              .normalized = true,
              .scale = 1};
  return c;
}

// Owns the numbers that its weights borrow.
class TinyWeights {
 public:
  explicit TinyWeights(const ModelConfig& config, unsigned seed = 1) : random_(seed) {
    weights_.config = config;
    weights_.embedding = matrix(config.vocab, config.hidden, 1);
    weights_.lm_head = matrix(config.vocab, config.hidden);
    weights_.norm = norm(config.hidden);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) add_layer(layer);
  }
  Weights& operator*() { return weights_; }
  Weights* operator->() { return &weights_; }

  // Rows of unit-variance outputs, unless `deviation` says otherwise.
  Matrix matrix(std::int64_t rows, std::int64_t cols, float deviation = 0) {
    if (deviation == 0) deviation = 1 / std::sqrt(static_cast<float>(cols));
    std::normal_distribution<float> normal(0, deviation);
    auto& values = storage_.emplace_back(static_cast<std::size_t>(rows * cols));
    for (float& value : values) value = normal(random_);
    return borrow(values, rows, cols);
  }
  // The numbers of a matrix made here.
  static float* numbers(const Matrix& matrix) {
    return const_cast<float*>(reinterpret_cast<const float*>(matrix.data));
  }
  static void fill(const Matrix& matrix, float value) {
    std::fill_n(numbers(matrix), matrix.rows * matrix.cols, value);
  }

 private:
  static Matrix borrow(const std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
    Matrix out;
    out.rows = rows;
    out.cols = cols;
    out.data = reinterpret_cast<const std::byte*>(values.data());
    return out;
  }
  Norm norm(std::int64_t count) {
    std::uniform_real_distribution<float> uniform(0.5F, 1.5F);
    Norm out(static_cast<std::size_t>(count));
    for (float& gain : out) gain = uniform(random_);
    return out;
  }
  Mlp mlp(std::int64_t intermediate) {
    const std::int64_t hidden = weights_.config.hidden;
    return {matrix(intermediate, hidden), matrix(intermediate, hidden),
            matrix(hidden, intermediate)};
  }
  void add_layer(std::int64_t index) {
    const ModelConfig& c = weights_.config;
    LayerWeights layer;
    layer.attention_norm = norm(c.hidden);
    layer.mlp_norm = norm(c.hidden);
    if (c.family == Family::kMla) {
      MlaWeights& w = layer.mla;
      w.q_a = matrix(c.q_lora_rank, c.hidden);
      w.q_a_norm = norm(c.q_lora_rank);
      w.q_b = matrix(c.heads * c.qk_dim(), c.q_lora_rank);
      w.kv_a = matrix(c.latent_dim(), c.hidden);
      w.kv_a_norm = norm(c.kv_lora_rank);
      w.kv_b = matrix(c.heads * (c.nope_dim + c.v_dim), c.kv_lora_rank);
      w.o = matrix(c.hidden, c.heads * c.v_dim);
      if (c.indexer.heads > 0) {
        w.indexer.q_b = matrix(c.indexer.heads * c.indexer.head_dim, c.q_lora_rank);
        w.indexer.k = matrix(c.indexer.head_dim, c.hidden);
        w.indexer.k_norm = norm(c.indexer.head_dim);
        w.indexer.k_bias = norm(c.indexer.head_dim);
        w.indexer.weights = matrix(c.indexer.heads, c.hidden);
      }
    } else {
      GqaWeights& w = layer.gqa;
      w.q = matrix(c.heads * c.head_dim, c.hidden);
      w.k = matrix(c.kv_heads * c.head_dim, c.hidden);
      w.v = matrix(c.kv_heads * c.head_dim, c.hidden);
      w.o = matrix(c.hidden, c.heads * c.head_dim);
      w.q_norm = norm(c.head_dim);
      w.k_norm = norm(c.head_dim);
    }
    if (c.is_moe(index)) {
      layer.router = matrix(c.router.experts, c.hidden);
      for (std::int64_t i = 0; i < c.router.experts; ++i)
        layer.experts.push_back(mlp(c.moe_intermediate));
      if (c.router.shared > 0) layer.shared = mlp(c.moe_intermediate * c.router.shared);
      if (c.router.biased) layer.bias = norm(c.router.experts);
    } else {
      layer.dense = mlp(c.intermediate);
    }
    weights_.layers.push_back(std::move(layer));
  }

  std::mt19937 random_;
  std::deque<std::vector<float>> storage_;
  Weights weights_;
};

}  // namespace culprit::lab
