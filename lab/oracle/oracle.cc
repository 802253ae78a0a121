#include "lab/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lab/number/bf16.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"
#include "lab/oracle/maths.h"

namespace culprit::lab {
namespace {

using Vector = Oracle::Vector;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void add(Vector& sum, const Vector& more, double factor = 1) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * more[i];
}

// The activations that an NVFP4 matrix product sees.
Vector rounded_to_fp4(const Vector& x, float input_scale) {
  const std::vector<float> row(x.begin(), x.end());
  std::vector<std::uint8_t> codes(x.size() / 2), scales(x.size() / at(kNvfp4Block));
  quantize_activations(row, input_scale, codes.data(), scales.data());
  Vector out(x.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(codes[i / 2] >> (i % 2 * 4) & 0xf);
    out[i] = static_cast<double>(from_e2m1(code)) *
             static_cast<double>(from_e4m3(scales[i / at(kNvfp4Block)])) *
             static_cast<double>(input_scale);
  }
  return out;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// The groups with the best two scores together keep theirs; what others hold can't be chosen.
Vector masked_to_groups(const Router& router, Vector choice) {
  if (router.groups <= 1) return choice;
  const std::int64_t size = router.experts / router.groups;
  Vector group_scores;
  for (std::int64_t group = 0; group < router.groups; ++group) {
    const Vector members(choice.begin() + group * size, choice.begin() + (group + 1) * size);
    double score = 0;
    for (const std::int64_t best : maths::largest(members, router.biased ? 2 : 1))
      score += members[at(best)];
    group_scores.push_back(score);
  }
  std::vector<bool> kept(at(router.groups), false);
  for (const std::int64_t group : maths::largest(group_scores, router.groups_kept))
    kept[at(group)] = true;
  for (std::int64_t expert = 0; expert < router.experts; ++expert)
    if (!kept[at(expert / size)]) choice[at(expert)] = -std::numeric_limits<double>::infinity();
  return choice;
}

}  // namespace

const Vector& Oracle::dense(const Matrix& matrix) {
  Vector& values = dense_[matrix.data];
  if (!values.empty()) return values;
  std::vector<float> row(at(matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    dequantize_row(matrix, r, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

Vector Oracle::linear(const Matrix& matrix, const Vector& x) {
  const bool fp4 = matrix.format == Format::kNvfp4 && matrix.input_scale > 0;
  const Vector input = fp4 ? rounded_to_fp4(x, matrix.input_scale) : x;
  const Vector& values = dense(matrix);
  Vector y(at(matrix.rows));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    y[at(r)] = maths::dot(values.data() + r * matrix.cols, input.data(), matrix.cols);
  return y;
}

Vector Oracle::mlp(const Mlp& weights, const Vector& x) {
  Vector hidden = linear(weights.gate, x);
  const Vector up = linear(weights.up, x);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = silu(hidden[i]) * up[i];
  return linear(weights.down, hidden);
}

std::vector<Oracle::Choice> Oracle::route(const Router& router, const Vector& logits,
                                          const std::vector<float>& bias) {
  Vector scores = logits;
  if (router.scoring == Scoring::kSoftmax) scores = maths::softmax(std::move(scores));
  if (router.scoring == Scoring::kSigmoid)
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  Vector choice = scores;
  if (router.biased)
    for (std::size_t i = 0; i < choice.size(); ++i) choice[i] += static_cast<double>(bias[i]);
  std::vector<Choice> chosen;
  double sum = 0;
  for (const std::int64_t expert :
       maths::largest(masked_to_groups(router, std::move(choice)), router.per_token)) {
    chosen.push_back({expert, scores[at(expert)]});
    sum += scores[at(expert)];
  }
  for (Choice& one : chosen) one.weight *= router.scale / (router.normalized ? sum : 1.0);
  return chosen;
}

Vector Oracle::moe(const LayerWeights& layer, const Vector& x) {
  Vector sum(x.size(), 0.0);
  if (!layer.shared.gate.empty()) add(sum, mlp(layer.shared, x));
  for (const Choice& one : route(weights_.config.router, linear(layer.router, x), layer.bias))
    add(sum, mlp(layer.experts[at(one.expert)], x), one.weight);
  return sum;
}

Vector Oracle::stored(Vector row) const {
  if (pool_ == Pool::kExact) return row;
  for (double& value : row) {
    const auto wide = static_cast<float>(value);
    value = static_cast<double>(pool_ == Pool::kE4m3 ? from_e4m3(to_e4m3(wide))
                                                     : from_bf16(to_bf16(wide)));
  }
  return row;
}

Vector Oracle::next(Sequence& sequence, std::int32_t token) {
  const ModelConfig& config = weights_.config;
  const Vector& embedding = dense(weights_.embedding);
  const auto first = embedding.begin() + token * config.hidden;
  Vector x(first, first + config.hidden);
  for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
    const LayerWeights& layer = weights_.layers[l];
    const Vector normed = maths::rms_norm(x, layer.attention_norm, config.rms_eps);
    add(x, attend(layer, sequence.layers[l], normed, sequence.length));
    const Vector again = maths::rms_norm(x, layer.mlp_norm, config.rms_eps);
    add(x, layer.experts.empty() ? mlp(layer.dense, again) : moe(layer, again));
  }
  ++sequence.length;
  return linear(weights_.lm_head, maths::rms_norm(x, weights_.norm, config.rms_eps));
}

}  // namespace culprit::lab
