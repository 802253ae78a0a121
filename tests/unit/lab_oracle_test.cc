// The oracle has nobody to be held against, so it is held against what must hold: identities that a
// page of arithmetic shows, worked out here in other ways than its own.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lab/number/fp4.h"
#include "lab/number/fp8.h"
#include "lab/oracle/maths.h"
#include "lab/oracle/oracle.h"
#include "unit/lab_tiny_weights.h"

namespace culprit::lab {
namespace {

using Vector = Oracle::Vector;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// One layer whose MLP gives nothing, so that logits are lm_head(norm(embedding + attention)).
ModelConfig attention_only(ModelConfig config) {
  config.layers = 1;
  config.dense_layers = 1;
  config.router = {};
  return config;
}
void silence_mlp(Weights& weights) {
  for (LayerWeights& layer : weights.layers) TinyWeights::fill(layer.dense.down, 0);
}

Vector times(const Matrix& matrix, const Vector& x) {
  const float* numbers = TinyWeights::numbers(matrix);
  Vector y(at(matrix.rows), 0.0);
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c)
      y[at(r)] += static_cast<double>(numbers[r * matrix.cols + c]) * x[at(c)];
  return y;
}
Vector normed(const Vector& x, const Norm& gains, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value / static_cast<double>(x.size());
  Vector out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back(x[i] / std::sqrt(squares + eps) * static_cast<double>(gains[i]));
  return out;
}
Vector embedding(const Weights& weights, std::int64_t token) {
  const float* row = TinyWeights::numbers(weights.embedding) + token * weights.config.hidden;
  return Vector(row, row + weights.config.hidden);
}
Vector logits_of(const Weights& weights, std::int64_t token, const Vector& attention) {
  Vector x = embedding(weights, token);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += attention[i];
  return times(weights.lm_head, normed(x, weights.norm, weights.config.rms_eps));
}
void expect_near(const Vector& got, const Vector& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

// The values of a token in MLA: the lower part of each head of kv_b, times the normalised latent.
Vector mla_values(const Weights& weights, std::int64_t token) {
  const ModelConfig& c = weights.config;
  const MlaWeights& w = weights.layers[0].mla;
  const Vector x = normed(embedding(weights, token), weights.layers[0].attention_norm, c.rms_eps);
  Vector latent = times(w.kv_a, x);
  latent.resize(at(c.kv_lora_rank));
  const Vector all = times(w.kv_b, normed(latent, w.kv_a_norm, c.rms_eps));
  Vector values;
  for (std::int64_t head = 0; head < c.heads; ++head) {
    const auto first = all.begin() + head * (c.nope_dim + c.v_dim) + c.nope_dim;
    values.insert(values.end(), first, first + c.v_dim);
  }
  return values;
}

// A single token attends to itself alone: whatever the queries say, it gets its own values.
TEST(Oracle, OneTokenOfMlaGetsItsOwnValues) {
  TinyWeights tiny(attention_only(tiny_mla()));
  silence_mlp(*tiny);
  Oracle oracle(*tiny);
  auto sequence = oracle.begin();
  const Vector attention = times(tiny->layers[0].mla.o, mla_values(*tiny, 7));
  expect_near(oracle.next(sequence, 7), logits_of(*tiny, 7, attention), 1e-12);
}

// Queries of zeros look at every position alike: attention is the mean of the values.
TEST(Oracle, BlindQueriesGetTheMeanOfTheValues) {
  TinyWeights tiny(attention_only(tiny_mla()));
  silence_mlp(*tiny);
  TinyWeights::fill(tiny->layers[0].mla.q_b, 0);
  Oracle oracle(*tiny);
  auto sequence = oracle.begin();
  Vector mean(at(tiny->config.heads * tiny->config.v_dim), 0.0), logits;
  for (const std::int32_t token : {3, 11, 40}) {
    logits = oracle.next(sequence, token);
    const Vector values = mla_values(*tiny, token);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / 3;
  }
  expect_near(logits, logits_of(*tiny, 40, times(tiny->layers[0].mla.o, mean)), 1e-12);
}

TEST(Oracle, BlindQueriesOfGqaGetTheMeanOfTheirGroup) {
  TinyWeights tiny(attention_only(tiny_gqa()));
  silence_mlp(*tiny);
  tiny->config.qk_norm = false;
  const GqaWeights& w = tiny->layers[0].gqa;
  TinyWeights::fill(w.q, 0);
  Oracle oracle(*tiny);
  auto sequence = oracle.begin();
  Vector logits, mean(at(w.v.rows), 0.0);
  for (const std::int32_t token : {5, 6}) {
    logits = oracle.next(sequence, token);
    const Vector x =
        normed(embedding(*tiny, token), tiny->layers[0].attention_norm, tiny->config.rms_eps);
    const Vector values = times(w.v, x);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] / 2;
  }
  Vector heads;  // 6 heads over 2 groups
  for (std::int64_t head = 0; head < 6; ++head)
    heads.insert(heads.end(), mean.begin() + head / 3 * 16, mean.begin() + head / 3 * 16 + 16);
  expect_near(logits, logits_of(*tiny, 6, times(w.o, heads)), 1e-12);
}

// kv_b in one piece, and as GGUF splits it, is the same model.
TEST(Oracle, SplitKvBIsTheSame) {
  TinyWeights whole(tiny_mla(), 3), parts(tiny_mla(), 3);
  const ModelConfig& c = whole->config;
  for (LayerWeights& layer : parts->layers) {
    const float* kv_b = TinyWeights::numbers(layer.mla.kv_b);
    layer.mla.k_b = parts.matrix(c.heads * c.kv_lora_rank, c.nope_dim);
    layer.mla.v_b = parts.matrix(c.heads * c.v_dim, c.kv_lora_rank);
    for (std::int64_t head = 0; head < c.heads; ++head)
      for (std::int64_t l = 0; l < c.kv_lora_rank; ++l) {
        const std::int64_t first = head * (c.nope_dim + c.v_dim);
        for (std::int64_t i = 0; i < c.nope_dim; ++i)
          TinyWeights::numbers(layer.mla.k_b)[(head * c.kv_lora_rank + l) * c.nope_dim + i] =
              kv_b[(first + i) * c.kv_lora_rank + l];
        for (std::int64_t i = 0; i < c.v_dim; ++i)
          TinyWeights::numbers(layer.mla.v_b)[(head * c.v_dim + i) * c.kv_lora_rank + l] =
              kv_b[(first + c.nope_dim + i) * c.kv_lora_rank + l];
      }
    layer.mla.kv_b = {};
  }
  Oracle one(*whole), other(*parts);
  auto a = one.begin(), b = other.begin();
  for (const std::int32_t token : {1, 2, 3, 4})
    expect_near(one.next(a, token), other.next(b, token), 1e-12);
}

// Scores depend on how far apart two tokens are, not on where they stand.
TEST(Oracle, RopeKnowsDistancesOnly) {
  ModelConfig config = tiny_gqa();
  const Vector q{0.3, -1.2, 0.7, 2.0, 0.1, 0.4, -0.6, 1.1},
      k{1.0, 0.2, -0.9, 0.5, 0.8, -1.5, 0.3, 0.6};
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalfSplit})
    for (const bool stretched : {false, true}) {
      config.yarn.reset();
      if (stretched) config.yarn = Yarn{.factor = 40, .mscale = 1, .mscale_all_dim = 1};
      Vector near_q = q, near_k = k, far_q = q, far_k = k;
      maths::rope(near_q.data(), 8, 5, style, config);
      maths::rope(near_k.data(), 8, 2, style, config);
      maths::rope(far_q.data(), 8, 1005, style, config);
      maths::rope(far_k.data(), 8, 1002, style, config);
      const double near = maths::dot(near_q.data(), near_k.data(), 8);
      EXPECT_NEAR(near, maths::dot(far_q.data(), far_k.data(), 8), 1e-10);
      EXPECT_GT(std::abs(near - maths::dot(q.data(), k.data(), 8)), 1e-3);
    }
}

// Position 1 turns pair i by theta^(-2i / dim); the pairs are neighbours, or half a row apart.
TEST(Oracle, RopeTurnsPairs) {
  ModelConfig config;
  config.rope_theta = 100;
  Vector x{1, 0, 1, 0};
  maths::rope(x.data(), 4, 1, RopeStyle::kInterleaved, config);
  expect_near(x, {std::cos(1.0), std::sin(1.0), std::cos(0.1), std::sin(0.1)}, 1e-15);
  x = {1, 1, 0, 0};
  maths::rope(x.data(), 4, 1, RopeStyle::kHalfSplit, config);
  expect_near(x, {std::cos(1.0), std::cos(0.1), std::sin(1.0), std::sin(0.1)}, 1e-15);
}

// YaRN keeps the pairs that turn often, slows the others by its factor; DeepSeek-V3's figures.
TEST(Oracle, YarnStretchesSlowPairsOnly) {
  ModelConfig config;
  config.rope_theta = 10000;
  config.yarn = Yarn{.factor = 40,
                     .original_positions = 4096,
                     .beta_fast = 32,
                     .beta_slow = 1,
                     .mscale = 1,
                     .mscale_all_dim = 1};
  Vector x(64, 0.0);
  for (std::size_t pair = 0; pair < 32; ++pair) x[2 * pair] = 1;
  maths::rope(x.data(), 64, 1, RopeStyle::kInterleaved, config);
  const auto angle = [&](std::size_t pair) { return std::atan2(x[2 * pair + 1], x[2 * pair]); };
  const auto plain = [](std::size_t pair) {
    return std::pow(10000.0, -static_cast<double>(pair) / 32);
  };
  for (const std::size_t pair : {0U, 5U, 10U}) EXPECT_NEAR(angle(pair), plain(pair), 1e-12) << pair;
  for (const std::size_t pair : {23U, 28U, 31U})
    EXPECT_NEAR(angle(pair), plain(pair) / 40, 1e-12) << pair;
  EXPECT_LT(angle(16), plain(16));
  EXPECT_GT(angle(16), plain(16) / 40);
}

// Biased choice, unbiased weights; a group counts by its best two.
TEST(Oracle, RoutesByHand) {
  const Router router{.experts = 6,
                      .per_token = 2,
                      .shared = 0,
                      .groups = 3,
                      .groups_kept = 1,
                      .scoring = Scoring::kSigmoid,
                      .biased = true,
                      .normalized = true,
                      .scale = 2};
  // sigmoid: 0.5, 0.881, 0.731, 0.731, 0.269, 0.953; the last group has 0.269 + 0.953 = 1.222, the
  // first 1.381, the second 1.462 + 0.1.
  const Vector logits{0, 2, 1, 1, -1, 3};
  const auto chosen = Oracle::route(router, logits, {0, 0, 0, 0.1F, 0, 0});
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].expert, 3);
  EXPECT_EQ(chosen[1].expert, 2);
  EXPECT_NEAR(chosen[0].weight, 1, 1e-12);
  EXPECT_NEAR(chosen[1].weight, 1, 1e-12);

  const Router plain{.experts = 3, .per_token = 2, .scoring = Scoring::kSoftmax, .scale = 1};
  const auto soft = Oracle::route(plain, {std::log(1.0), std::log(2.0), std::log(5.0)}, {});
  EXPECT_EQ(soft[0].expert, 2);
  EXPECT_NEAR(soft[0].weight, 5.0 / 8, 1e-12);
  EXPECT_NEAR(soft[1].weight, 2.0 / 8, 1e-12);
}

// All experts alike: whatever the router says, a token gets what one of them gives, weights adding
// up to the scale, and the shared expert's output on top.
TEST(Oracle, EqualExpertsMakeRoutingVoid) {
  TinyWeights tiny(tiny_mla());
  LayerWeights& layer = tiny->layers[1];
  for (Mlp& expert : layer.experts) expert = layer.experts[0];
  TinyWeights other(tiny_mla());
  LayerWeights& dense = other->layers[1];
  const ModelConfig& c = tiny->config;
  // One dense MLP of both: rows one below the other, down beside each other.
  const std::int64_t inner = c.moe_intermediate;
  dense.dense = {other.matrix(2 * inner, c.hidden), other.matrix(2 * inner, c.hidden),
                 other.matrix(c.hidden, 2 * inner)};
  const auto stack = [&](const Matrix& to, const Matrix& a, const Matrix& b) {
    std::copy_n(TinyWeights::numbers(a), a.rows * a.cols, TinyWeights::numbers(to));
    std::copy_n(TinyWeights::numbers(b), b.rows * b.cols,
                TinyWeights::numbers(to) + a.rows * a.cols);
  };
  stack(dense.dense.gate, layer.experts[0].gate, layer.shared.gate);
  stack(dense.dense.up, layer.experts[0].up, layer.shared.up);
  for (std::int64_t r = 0; r < c.hidden; ++r)
    for (std::int64_t i = 0; i < inner; ++i) {
      float* to = TinyWeights::numbers(dense.dense.down) + r * 2 * inner + i;
      to[0] = 1.5F * TinyWeights::numbers(layer.experts[0].down)[r * inner + i];
      to[inner] = TinyWeights::numbers(layer.shared.down)[r * inner + i];
    }
  dense.experts.clear();
  Oracle one(*tiny), two(*other);
  auto a = one.begin(), b = two.begin();
  for (const std::int32_t token : {9, 8, 7})
    expect_near(one.next(a, token), two.next(b, token), 1e-6);
}

// An indexer that keeps all positions is none; one that keeps the own position only sees that.
TEST(Oracle, IndexerPicksPositions) {
  ModelConfig config = attention_only(tiny_mla());
  config.indexer = {.heads = 2, .head_dim = 16, .top_k = 8, .rope = RopeStyle::kHalfSplit};
  TinyWeights tiny(config);
  silence_mlp(*tiny);
  Oracle wide(*tiny);
  auto sequence = wide.begin();
  Vector with_all;
  for (const std::int32_t token : {1, 2, 3, 4}) with_all = wide.next(sequence, token);
  tiny->config.indexer.heads = 0;
  Oracle without(*tiny);
  sequence = without.begin();
  Vector dense;
  for (const std::int32_t token : {1, 2, 3, 4}) dense = without.next(sequence, token);
  expect_near(with_all, dense, 1e-12);

  tiny->config.indexer = {.heads = 2, .head_dim = 16, .top_k = 1, .rope = RopeStyle::kHalfSplit};
  Oracle narrow(*tiny);
  sequence = narrow.begin();
  Vector picked;
  for (const std::int32_t token : {1, 2, 3, 4}) picked = narrow.next(sequence, token);
  int same = 0;  // as the one position that it picked gives
  for (const std::int64_t token : {1, 2, 3, 4}) {
    const Vector one = logits_of(*tiny, 4, times(tiny->layers[0].mla.o, mla_values(*tiny, token)));
    double worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
      worst = std::max(worst, std::abs(one[i] - picked[i]));
    same += worst < 1e-12 ? 1 : 0;
  }
  EXPECT_EQ(same, 1);
}

TEST(Oracle, RoundsActivationsOfNvfp4) {
  std::vector<float> numbers(32);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
  const Nvfp4 codes = quantize_nvfp4(numbers, 1, 32);
  Matrix matrix;
  matrix.format = Format::kNvfp4;
  matrix.rows = 1;
  matrix.cols = 32;
  matrix.data = reinterpret_cast<const std::byte*>(codes.codes.data());
  matrix.block_scales = reinterpret_cast<const std::byte*>(codes.scales.data());
  matrix.scale = codes.scale_2;
  // Block 0 is exact in FP4 at a scale of 1; of block 1 only 5.2 is not, and becomes 6.
  Vector x(32, 0.0);
  x[0] = 6;
  x[1] = -1.5;
  x[16] = 5.2;
  x[17] = 6;
  Vector seen = x;
  seen[16] = 6;
  TinyWeights tiny(tiny_mla());
  Oracle oracle(*tiny);
  const Vector wide = oracle.linear(matrix, x), at_six = oracle.linear(matrix, seen);
  matrix.input_scale = 1;
  EXPECT_NEAR(oracle.linear(matrix, x)[0], at_six[0], 1e-12);
  EXPECT_GT(std::abs(wide[0] - at_six[0]), 1e-3);
}

TEST(Oracle, KeepsRowsAsAnFp8PoolGivesThemBack) {
  TinyWeights tiny(tiny_gqa());
  Oracle exact(*tiny), rounded(*tiny, Oracle::Pool::kE4m3);
  auto a = exact.begin(), b = rounded.begin();
  static_cast<void>(exact.next(a, 3));
  static_cast<void>(rounded.next(b, 3));
  int moved = 0;
  for (std::size_t i = 0; i < a.layers[0].keys[0].size(); ++i) {
    const double value = a.layers[0].keys[0][i], kept = b.layers[0].keys[0][i];
    EXPECT_EQ(static_cast<float>(kept), from_e4m3(to_e4m3(static_cast<float>(kept))));
    EXPECT_NEAR(kept, value, std::max(std::abs(value) / 16, 0x1p-10));
    moved += kept != value ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace culprit::lab
