#include "compare/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace culprit::compare {
namespace {

using Steps = std::vector<Nanos>;

// Every way to choose the first side's places, counted one by one.
double brute_p(const Steps& before, const Steps& after) {
  Steps all = before;
  all.insert(all.end(), after.begin(), after.end());
  const std::size_t n = all.size();
  const auto rank_sum = [&](std::uint32_t chosen) {  // twice the sum of mean ranks
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if ((chosen >> i & 1U) == 0) continue;
      std::int64_t less = 0, equal = 0;
      for (const Nanos other : all) {
        less += other < all[i] ? 1 : 0;
        equal += other == all[i] ? 1 : 0;
      }
      sum += 2 * less + equal + 1;
    }
    return sum;
  };
  const auto middle = static_cast<std::int64_t>(before.size() * (n + 1));
  const std::int64_t far = std::abs(rank_sum((1U << before.size()) - 1) - middle);
  double count = 0, extreme = 0;
  for (std::uint32_t chosen = 0; chosen < 1U << n; ++chosen) {
    if (static_cast<std::size_t>(__builtin_popcount(chosen)) != before.size()) continue;
    ++count;
    extreme += std::abs(rank_sum(chosen) - middle) >= far ? 1 : 0;
  }
  return extreme / count;
}

TEST(Noise, TheExactTestIsTheCountOfAllChoices) {
  std::mt19937 draw(3);
  for (int round = 0; round < 40; ++round) {
    Steps before(1 + draw() % 6), after(1 + draw() % 6);
    for (Nanos& step : before) step = static_cast<Nanos>(draw() % 8);
    for (Nanos& step : after) step = static_cast<Nanos>(draw() % 8) + round % 3;
    EXPECT_NEAR(rank_test(before, after, true), brute_p(before, after), 1e-12);
  }
}

TEST(Noise, TheApproximationIsNearTheExactTest) {
  std::mt19937 draw(5);
  std::normal_distribution<double> noise(0, 1000);
  for (const double shift : {0.0, 300.0, 700.0}) {
    Steps before, after;
    for (int i = 0; i < 28; ++i) {
      before.push_back(static_cast<Nanos>(100'000 + noise(draw)));
      after.push_back(static_cast<Nanos>(100'000 + shift + noise(draw)));
    }
    const double exact = rank_test(before, after, true), normal = rank_test(before, after, false);
    EXPECT_NEAR(exact, normal, 0.01 + 0.1 * exact) << shift;
  }
}

TEST(Noise, SidesSwappedGiveTheSame) {
  const Steps before{100, 101, 103, 99, 100, 102}, after{110, 112, 109, 111, 110, 113};
  const Noise there = judge_noise(before, after), back = judge_noise(after, before);
  EXPECT_EQ(there.p, back.p);
  EXPECT_EQ(there.half_width, back.half_width);
  EXPECT_TRUE(there.apart && back.apart);
  EXPECT_NEAR(*there.p, 2.0 / 924, 1e-12);  // the most extreme of 12 choose 6, on both ends
}

TEST(Noise, AFalseAlarmIsAsRareAsItIsSaidToBe) {
  std::mt19937 draw(11);
  std::normal_distribution<double> noise(0, 500);
  int alarms = 0, outside = 0;
  constexpr int kRounds = 10'000;
  for (int round = 0; round < kRounds; ++round) {
    Steps before, after;
    for (int i = 0; i < 35; ++i) {  // beyond kExactSteps
      before.push_back(static_cast<Nanos>(50'000 + noise(draw)));
      after.push_back(static_cast<Nanos>(50'000 + noise(draw)));
    }
    const Noise judged = judge_noise(before, after);
    const Nanos sum = std::accumulate(after.begin(), after.end(), Nanos{0}) -
                      std::accumulate(before.begin(), before.end(), Nanos{0});
    alarms += *judged.p < kSignificant ? 1 : 0;
    outside += std::abs(sum) > 35 * *judged.half_width ? 1 : 0;
  }
  EXPECT_NEAR(alarms, kRounds * kSignificant, 0.3 * kRounds * kSignificant);  // three sigma
  EXPECT_NEAR(outside, kRounds * 0.05, 0.14 * kRounds * 0.05);
}

TEST(Noise, TooFewStepsAreSaidToBe) {
  EXPECT_FALSE(judge_noise(Steps{5}, Steps{9}).p);
  EXPECT_FALSE(judge_noise(Steps{5}, Steps{9}).half_width);
  EXPECT_TRUE(judge_noise(Steps{5}, Steps{9}).apart);
  EXPECT_FALSE(judge_noise(Steps{5, 6, 7, 5}, Steps{9, 9, 8, 9}).p);  // 2 / 70 is not below 0.01
  EXPECT_TRUE(judge_noise(Steps{5, 6, 7, 5, 6}, Steps{9, 9, 8, 9, 9}).p);
  EXPECT_FALSE(judge_noise({}, Steps{9}).apart);
}

TEST(Noise, TheIntervalIsWelchs) {
  const Steps before{100, 104, 98, 102, 101, 99}, after{120, 131, 118, 125, 122, 127};
  // Variances of the means 0.7778 and 3.8278, 6.95 degrees of freedom, t = 2.368 (by integration of its
  // density): 5.08.
  EXPECT_EQ(judge_noise(before, after).half_width, 5);
  EXPECT_EQ(judge_noise(Steps(8, 70), Steps(8, 90)).half_width, 0);
}

}  // namespace
}  // namespace culprit::compare
