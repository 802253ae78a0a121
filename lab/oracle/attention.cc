#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/number/fp8.h"
#include "lab/oracle/maths.h"
#include "lab/oracle/oracle.h"

namespace culprit::lab {
namespace {

using Vector = Oracle::Vector;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::span<const double> part(const Vector& x, std::int64_t first, std::int64_t count) {
  return std::span(x).subspan(at(first), at(count));
}
Vector joined(std::span<const double> a, std::span<const double> b) {
  Vector out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// An indexer's key as its cache gives it back: E4M3 codes of k / scale, scale = amax / 448.
Vector stored_index_key(Vector key) {
  float amax = 0;
  for (const double value : key) amax = std::max(amax, std::abs(static_cast<float>(value)));
  const float scale = amax > 0 ? amax / 448.0F : 1.0F;
  for (double& value : key) {
    const std::uint8_t code = to_e4m3(static_cast<float>(value) / scale);
    value = static_cast<double>(from_e4m3(code)) * static_cast<double>(scale);
  }
  return key;
}

}  // namespace

Vector Oracle::attend(const LayerWeights& layer, Layer& cache, const Vector& x,
                      std::int64_t position) {
  return weights_.config.family == Family::kMla ? attend_mla(layer.mla, cache, x, position)
                                                : attend_gqa(layer.gqa, cache, x, position);
}

// Keys and values of all heads from a latent row.
Oracle::Expanded Oracle::expand(const MlaWeights& layer, const Vector& row, std::int64_t heads) {
  const ModelConfig& c = weights_.config;
  const std::int64_t latent = c.kv_lora_rank, nope = c.nope_dim, v = c.v_dim;
  Expanded out{Vector(at(heads * nope)), Vector(at(heads * v))};
  if (!layer.kv_b.empty()) {
    const Vector& kv_b = dense(layer.kv_b);
    for (std::int64_t head = 0; head < heads; ++head) {
      const double* rows = kv_b.data() + head * (nope + v) * latent;
      for (std::int64_t i = 0; i < nope; ++i)
        out.keys[at(head * nope + i)] = maths::dot(rows + i * latent, row.data(), latent);
      for (std::int64_t i = 0; i < v; ++i)
        out.values[at(head * v + i)] = maths::dot(rows + (nope + i) * latent, row.data(), latent);
    }
    return out;
  }
  const Vector &k_b = dense(layer.k_b), &v_b = dense(layer.v_b);
  for (std::int64_t i = 0; i < heads * v; ++i)
    out.values[at(i)] = maths::dot(v_b.data() + i * latent, row.data(), latent);
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t l = 0; l < latent; ++l)
      for (std::int64_t i = 0; i < nope; ++i)
        out.keys[at(head * nope + i)] += k_b[at((head * latent + l) * nope + i)] * row[at(l)];
  return out;
}

std::vector<std::int64_t> Oracle::chosen_positions(const IndexerWeights& indexer, Layer& cache,
                                                   const Vector& x, const Vector& q_residual,
                                                   std::int64_t position) {
  const ModelConfig& c = weights_.config;
  std::vector<std::int64_t> all;
  for (std::int64_t s = 0; s <= position; ++s) all.push_back(s);
  if (c.indexer.heads == 0) return all;

  const std::int64_t dim = c.indexer.head_dim;
  // The reference's LayerNorm has an epsilon of its own, whatever the model's is.
  Vector key = maths::layer_norm(linear(indexer.k, x), indexer.k_norm, indexer.k_bias, 1e-6);
  maths::rope(key.data(), c.rope_dim, position, c.indexer.rope, c);
  cache.index_keys.push_back(stored_index_key(std::move(key)));

  Vector queries = linear(indexer.q_b, q_residual);
  const Vector weights = linear(indexer.weights, x);
  Vector scores(at(position + 1), 0.0);
  for (std::int64_t head = 0; head < c.indexer.heads; ++head) {
    double* q = queries.data() + head * dim;
    maths::rope(q, c.rope_dim, position, c.indexer.rope, c);
    const double weight = weights[at(head)] / std::sqrt(static_cast<double>(c.indexer.heads));
    for (const std::int64_t s : all) {
      const double score =
          maths::dot(q, cache.index_keys[at(s)].data(), dim) / std::sqrt(static_cast<double>(dim));
      scores[at(s)] += weight * std::max(score, 0.0);
    }
  }
  return maths::largest(scores, c.indexer.top_k);
}

Vector Oracle::attend_mla(const MlaWeights& layer, Layer& cache, const Vector& x,
                          std::int64_t position) {
  const ModelConfig& c = weights_.config;
  const std::int64_t latent = c.kv_lora_rank, nope = c.nope_dim, v = c.v_dim, qk = c.qk_dim();
  const Vector q_residual =
      layer.q_a.empty() ? x : maths::rms_norm(linear(layer.q_a, x), layer.q_a_norm, c.rms_eps);
  Vector q = linear(layer.q_b, q_residual);
  const auto heads = static_cast<std::int64_t>(q.size()) / qk;
  for (std::int64_t head = 0; head < heads; ++head)
    maths::rope(q.data() + head * qk + nope, c.rope_dim, position, c.rope, c);

  const Vector kv = linear(layer.kv_a, x);
  Vector row = joined(maths::rms_norm(part(kv, 0, latent), layer.kv_a_norm, c.rms_eps),
                      part(kv, latent, c.rope_dim));
  maths::rope(row.data() + latent, c.rope_dim, position, c.rope, c);
  cache.keys.push_back(stored(std::move(row)));
  cache.expanded.push_back(expand(layer, cache.keys.back(), heads));

  const auto chosen = chosen_positions(layer.indexer, cache, x, q_residual, position);
  Vector out;
  for (std::int64_t head = 0; head < heads; ++head) {
    std::vector<Vector> keys;  // of this head: its own part, then the rope part that all share
    keys.reserve(chosen.size());
    for (const std::int64_t s : chosen)
      keys.push_back(joined(part(cache.expanded[at(s)].keys, head * nope, nope),
                            part(cache.keys[at(s)], latent, c.rope_dim)));
    std::vector<maths::Attended> rows;
    rows.reserve(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
      rows.push_back({keys[i], part(cache.expanded[at(chosen[i])].values, head * v, v)});
    out = joined(out, maths::attend(part(q, head * qk, qk), rows, c.softmax_scale()));
  }
  return linear(layer.o, out);
}

Vector Oracle::attend_gqa(const GqaWeights& layer, Layer& cache, const Vector& x,
                          std::int64_t position) {
  const ModelConfig& c = weights_.config;
  const std::int64_t dim = c.head_dim;
  Vector q = linear(layer.q, x), k = linear(layer.k, x);
  const auto positioned = [&](Vector& heads, const std::vector<float>& gains) {
    for (std::size_t first = 0; first < heads.size(); first += at(dim)) {
      if (c.qk_norm) {
        const std::span<const double> head = std::span(heads).subspan(first, at(dim));
        const Vector normed = maths::rms_norm(head, gains, c.rms_eps);
        std::copy(normed.begin(), normed.end(), heads.begin() + static_cast<std::ptrdiff_t>(first));
      }
      maths::rope(heads.data() + first, dim, position, c.rope, c);
    }
  };
  positioned(q, layer.q_norm);
  positioned(k, layer.k_norm);
  cache.keys.push_back(stored(std::move(k)));
  cache.values.push_back(stored(linear(layer.v, x)));

  const auto heads = static_cast<std::int64_t>(q.size()) / dim;
  const auto kv_heads = static_cast<std::int64_t>(cache.keys.back().size()) / dim;
  Vector out;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t group = head / (heads / kv_heads);
    std::vector<maths::Attended> rows;
    rows.reserve(at(position + 1));
    for (std::int64_t s = 0; s <= position; ++s)
      rows.push_back(
          {part(cache.keys[at(s)], group * dim, dim), part(cache.values[at(s)], group * dim, dim)});
    out = joined(out, maths::attend(part(q, head * dim, dim), rows, c.softmax_scale()));
  }
  return linear(layer.o, out);
}

}  // namespace culprit::lab
