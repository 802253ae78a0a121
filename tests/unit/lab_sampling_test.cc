// Sampling against the distribution that its definition gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "lab/engine/sampling.h"

namespace culprit::lab {
namespace {

const std::vector<float> kLogits{1.0F, 3.0F, 2.0F, 3.0F, -1.0F, 0.5F};

std::map<std::int32_t, double> shares(const Sampling& sampling) {
  constexpr int kDraws = 40000;
  Sampler sampler(static_cast<std::int64_t>(kLogits.size()));
  std::map<std::int32_t, double> out;
  for (int i = 0; i < kDraws; ++i) out[sampler(kLogits, sampling, i)] += 1.0 / kDraws;
  return out;
}

// The definition, in the plainest form: sort, cut, renormalise.
std::map<std::int32_t, double> expected(const Sampling& sampling) {
  std::vector<std::pair<double, std::int32_t>> best;
  for (std::size_t i = 0; i < kLogits.size(); ++i)
    best.push_back({-std::exp(static_cast<double>(kLogits[i]) / sampling.temperature),
                    static_cast<std::int32_t>(i)});
  std::sort(best.begin(), best.end());
  if (sampling.top_k > 0) best.resize(static_cast<std::size_t>(sampling.top_k));
  double total = 0, sum = 0;
  for (const auto& [weight, token] : best) total -= weight;
  std::map<std::int32_t, double> out;
  for (const auto& [weight, token] : best) {
    if (sum >= sampling.top_p * total) break;
    out[token] = -weight;
    sum -= weight;
  }
  for (auto& [token, share] : out) share /= sum;
  return out;
}

TEST(Sampling, FollowsItsDistribution) {
  for (const Sampling& sampling :
       {Sampling{.temperature = 1, .seed = 1}, Sampling{.temperature = 0.8, .seed = 2},
        Sampling{.temperature = 1, .top_k = 3, .seed = 3},
        Sampling{.temperature = 2, .top_p = 0.8, .seed = 4},
        Sampling{.temperature = 1.5, .top_k = 4, .top_p = 0.7, .seed = 5}}) {
    const auto drawn = shares(sampling), wanted = expected(sampling);
    EXPECT_EQ(drawn.size(), wanted.size());
    for (const auto& [token, share] : wanted) {
      ASSERT_TRUE(drawn.count(token)) << token;
      EXPECT_NEAR(drawn.at(token), share, 5 * std::sqrt(share * (1 - share) / 40000)) << token;
    }
  }
}

TEST(Sampling, GreedyTakesTheFirstOfTheBest) {
  Sampler sampler(6);
  EXPECT_EQ(sampler(kLogits, {}, 0), 1);
  EXPECT_EQ(sampler(kLogits, {.temperature = 0, .seed = 99}, 7), 1);
}

TEST(Sampling, DependsOnSeedAndPlaceAlone) {
  Sampler one(6), other(6);
  const Sampling sampling{.temperature = 1, .seed = 12};
  std::vector<std::int32_t> forward, backward;
  for (int i = 0; i < 50; ++i) forward.push_back(one(kLogits, sampling, i));
  for (int i = 49; i >= 0; --i) {
    static_cast<void>(other(kLogits, {.temperature = 1, .seed = 3}, i));
    backward.insert(backward.begin(), other(kLogits, sampling, i));
  }
  EXPECT_EQ(forward, backward);
}

// Top-p over a large flat vocabulary: far more candidates than are sorted at first.
TEST(Sampling, TopPKeepsAsManyAsItTakes) {
  const std::vector<float> flat(5000, 0.0F);
  Sampler sampler(5000);
  std::int32_t highest = 0;
  for (int i = 0; i < 800; ++i)
    highest = std::max(highest, sampler(flat, {.temperature = 1, .top_p = 0.5, .seed = 8}, i));
  EXPECT_LT(highest, 2500);
  EXPECT_GT(highest, 2400);
}

}  // namespace
}  // namespace culprit::lab
