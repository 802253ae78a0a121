// Choices among scores, against sorting.
#include "lab/kernels/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lab/kernels/check_parts.h"

namespace culprit::lab {
namespace {

// Indices from best to worst: the larger number, then the lower index; NaN last.
std::vector<std::int32_t> sorted(const std::vector<float>& x) {
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const float left = x[static_cast<std::size_t>(a)], right = x[static_cast<std::size_t>(b)];
    return std::isnan(right) ? !std::isnan(left) : left > right;
  });
  return order;
}

TEST(Choose, TheLargestKAreThoseOfASort) {
  Draw draw(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x = draw.numbers(1 + draw.below(300));
    for (float& value : x) {  // many ties
      if (draw.below(3) == 0) value = static_cast<float>(draw.below(4)) - 2;
      if (draw.below(20) == 0) value = -0.0F;
      if (draw.below(50) == 0) value = std::numeric_limits<float>::quiet_NaN();
      if (draw.below(50) == 0) value = -std::numeric_limits<float>::infinity();
    }
    const auto n = static_cast<std::int64_t>(x.size());
    const std::int64_t k = draw.below(n + 3);
    std::vector<std::int32_t> want = sorted(x);
    EXPECT_EQ(argmax(x.data(), n), want[0]);
    want.resize(static_cast<std::size_t>(std::min(k, n)));
    std::sort(want.begin(), want.end());
    std::vector<std::int32_t> got(x.size());
    got.resize(static_cast<std::size_t>(top_k(x.data(), n, k, got.data())));
    EXPECT_EQ(got, want);
  }
}

// Two groups of four; without a bias the best are 1 (0.9) and 5 (0.8).
TEST(Choose, ABiasMovesTheChoiceButNotTheWeight) {
  const float logits[8] = {0, 2.1972246F, 0, 0, 0, 1.3862944F, 0, 0};  // sigmoid: 0.5, 0.9, 0.8
  const float bias[8] = {0, 0, 0, 1, 0, 0, 0, 0};
  std::int32_t ids[2];
  float weights[2];
  Routing routing{.experts = 8, .per_token = 2, .sigmoid = true, .normalized = true, .scale = 2.5F};
  route(routing, logits, nullptr, ids, weights);
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], 5);
  EXPECT_NEAR(weights[0], 2.5 * 0.9 / 1.7, 1e-6);
  EXPECT_NEAR(weights[1], 2.5 * 0.8 / 1.7, 1e-6);
  route(routing, logits, bias, ids, weights);
  EXPECT_EQ(ids[0], 3);  // 0.5 + 1
  EXPECT_EQ(ids[1], 1);
  EXPECT_NEAR(weights[0], 2.5 * 0.5 / 1.4, 1e-6);
}

TEST(Choose, AGroupIsAsGoodAsItsTwoBestExperts) {
  // Group 0 holds the single best; group 1's best two are better together.
  const float logits[8] = {3, -5, -5, -5, 2, 2, -5, -5};
  std::int32_t ids[2];
  float weights[2];
  Routing routing{.experts = 8, .per_token = 2, .groups = 2, .groups_kept = 1, .sigmoid = true};
  route(routing, logits, nullptr, ids, weights);
  EXPECT_EQ(ids[0], 4);
  EXPECT_EQ(ids[1], 5);
  EXPECT_NEAR(weights[0], 1 / (1 + std::exp(-2.0)), 1e-6);  // neither normalised nor scaled
}

TEST(Choose, SoftmaxScoresAddUpOverAllExperts) {
  const float logits[4] = {0, 1, 2, 3};
  std::int32_t ids[2];
  float weights[2];
  route({.experts = 4, .per_token = 2}, logits, nullptr, ids, weights);
  const double total = 1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_EQ(ids[0], 3);
  EXPECT_NEAR(weights[0], std::exp(3.0) / total, 1e-6);
  EXPECT_NEAR(weights[1], std::exp(2.0) / total, 1e-6);
}

}  // namespace
}  // namespace culprit::lab
