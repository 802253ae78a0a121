// Ranks are doubled, so that ties keep whole ranks. The exact distribution is that of the rank sum
// over all ways to choose one side's steps, ties included: counted by dynamic programming.
#include "compare/noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace culprit::compare {
namespace {

struct Ranks {
  std::vector<std::int64_t> doubled;  // of the steps before, then those after
  double ties = 0;                    // sum of t^3 - t
};

Ranks rank_all(std::span<const Nanos> before, std::span<const Nanos> after) {
  std::vector<Nanos> all(before.begin(), before.end());
  all.insert(all.end(), after.begin(), after.end());
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return all[a] < all[b]; });
  Ranks ranks;
  ranks.doubled.resize(all.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t next = i;
    while (next < order.size() && all[order[next]] == all[order[i]]) ++next;
    for (std::size_t k = i; k < next; ++k)
      ranks.doubled[order[k]] = static_cast<std::int64_t>(i + 1 + next);  // twice the mean rank
    const auto t = static_cast<double>(next - i);
    ranks.ties += t * t * t - t;
    i = next;
  }
  return ranks;
}

std::int64_t distance(const Ranks& ranks, std::size_t chosen) {
  const auto n = static_cast<std::int64_t>(ranks.doubled.size());
  const std::int64_t sum =
      std::accumulate(ranks.doubled.begin(),
                      ranks.doubled.begin() + static_cast<std::ptrdiff_t>(chosen), std::int64_t{0});
  return std::abs(sum - static_cast<std::int64_t>(chosen) * (n + 1));  // from its mean, doubled
}

// ways[k][s]: choices of k steps whose doubled ranks sum to s.
double exact_p(const Ranks& ranks, std::size_t chosen) {
  const auto total = static_cast<std::size_t>(
      std::accumulate(ranks.doubled.begin(), ranks.doubled.end(), std::int64_t{0}));
  std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(total + 1, 0));
  ways[0][0] = 1;
  for (const std::int64_t rank : ranks.doubled) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t k = chosen; k > 0; --k)
      for (std::size_t s = total; s >= r; --s) ways[k][s] += ways[k - 1][s - r];
  }
  const std::int64_t far = distance(ranks, chosen);
  const std::int64_t middle =
      static_cast<std::int64_t>(chosen) * static_cast<std::int64_t>(ranks.doubled.size() + 1);
  double all = 0, extreme = 0;
  for (std::size_t s = 0; s <= total; ++s) {
    all += ways[chosen][s];
    if (std::abs(static_cast<std::int64_t>(s) - middle) >= far) extreme += ways[chosen][s];
  }
  return std::min(1.0, extreme / all);
}

double normal_p(const Ranks& ranks, std::size_t chosen) {
  const auto n = static_cast<double>(ranks.doubled.size());
  const auto a = static_cast<double>(chosen), b = n - a;
  const double variance = a * b / 12 * (n + 1 - ranks.ties / (n * (n - 1)));
  if (variance <= 0) return 1;  // all alike
  const double u = static_cast<double>(distance(ranks, chosen)) / 2;
  const double z = std::max(0.0, u - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

struct Moments {
  double mean = 0, of_mean = 0, freedom = 0;  // of_mean: variance of the mean
};

Moments moments(std::span<const Nanos> values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const Nanos value : values) m.mean += static_cast<double>(value) / n;
  double squares = 0;
  for (const Nanos value : values) {
    const double off = static_cast<double>(value) - m.mean;
    squares += off * off;
  }
  m.freedom = n - 1;
  m.of_mean = squares / m.freedom / n;
  return m;
}

// The 97.5 % quantile of Student's t: Cornish-Fisher around the normal one (Abramowitz & Stegun
// 26.7.5), within 2 % from 3 degrees of freedom on.
double t_quantile(double freedom) {
  constexpr double z = 1.959964;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double f = freedom;
  return z + (z3 + z) / (4 * f) + (5 * z5 + 16 * z3 + 3 * z) / (96 * f * f) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * f * f * f);
}

Nanos welch(std::span<const Nanos> before, std::span<const Nanos> after) {
  const Moments a = moments(before), b = moments(after);
  const double variance = a.of_mean + b.of_mean;
  if (variance <= 0) return 0;
  const double freedom =
      variance * variance / (a.of_mean * a.of_mean / a.freedom + b.of_mean * b.of_mean / b.freedom);
  return static_cast<Nanos>(std::llround(t_quantile(freedom) * std::sqrt(variance)));
}

// The smallest p that so many steps can give: 2 / (n choose k).
bool can_tell(std::size_t a, std::size_t b) {
  double choices = 1;
  for (std::size_t i = 1; i <= std::min(a, b) && choices < 1e6; ++i)
    choices *= static_cast<double>(a + b + 1 - i) / static_cast<double>(i);
  return 2 / choices < kSignificant;
}

}  // namespace

double rank_test(std::span<const Nanos> before, std::span<const Nanos> after, bool exact) {
  const Ranks ranks = rank_all(before, after);
  return exact ? exact_p(ranks, before.size()) : normal_p(ranks, before.size());
}

Noise judge_noise(std::span<const Nanos> before, std::span<const Nanos> after) {
  Noise noise;
  if (before.empty() || after.empty()) return noise;
  const auto [low_a, high_a] = std::minmax_element(before.begin(), before.end());
  const auto [low_b, high_b] = std::minmax_element(after.begin(), after.end());
  noise.apart = *high_a < *low_b || *high_b < *low_a;
  if (before.size() > 1 && after.size() > 1) noise.half_width = welch(before, after);
  if (can_tell(before.size(), after.size()))
    noise.p = rank_test(before, after, before.size() + after.size() <= kExactSteps);
  return noise;
}

}  // namespace culprit::compare
