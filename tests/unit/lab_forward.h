// A text through the fast engine's forward pass, for tests that compare its scores.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lab/engine/forward.h"
#include "lab/engine/sampling.h"

namespace culprit::lab {

using Tokens = std::vector<std::int32_t>;

inline constexpr std::int64_t kLongest = 96;

inline Tokens prompt(std::int64_t length, std::int64_t vocab, std::uint64_t seed) {
  Tokens tokens;
  for (std::int64_t i = 0; i < length; ++i)
    tokens.push_back(static_cast<std::int32_t>(uniform(seed, static_cast<std::uint64_t>(i)) *
                                               static_cast<double>(vocab)));
  return tokens;
}

// Every expert of every token, every position: nothing is left to choose.
inline ModelConfig without_choices(ModelConfig config) {
  if (config.router.experts > 0) {
    config.router.experts = config.router.per_token = 4;
    config.router.groups = config.router.groups_kept = 1;
  }
  if (config.indexer.heads > 0) config.indexer.top_k = kLongest;
  return config;
}

// Logits behind each token of a text, in one pass.
inline std::vector<std::vector<float>> fast_logits(const Weights& weights, KvFormat format,
                                                   const Tokens& text, int threads = 2,
                                                   Ranks* ranks = nullptr) {
  const auto length = static_cast<std::int64_t>(text.size());
  PoolShape shape = pool_shape(weights);
  shape.tokens = kLongest;
  shape.format = format;
  auto pool = Pool::make(shape, 1, kLongest);
  Stream stream(threads);
  Launcher launch(stream);
  auto forward = Forward::make(weights, *pool, kernels(best_isa()), launch, Reading::kFused,
                               {length, length, 1, kLongest}, ranks);
  EXPECT_TRUE(pool.ok() && forward.ok());
  Lease lease = pool->lease();
  EXPECT_TRUE(pool->reserve(lease, length));
  std::vector<StepRow> rows;
  for (std::int64_t i = 0; i < length; ++i)
    rows.push_back({text[static_cast<std::size_t>(i)], i, lease.slots, true});
  (**forward)((*forward)->bring_in(launch, rows));
  launch.synchronize();
  std::vector<std::vector<float>> out;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto logits = (*forward)->logits(i);
    out.emplace_back(logits.begin(), logits.end());
  }
  return out;
}

}  // namespace culprit::lab
