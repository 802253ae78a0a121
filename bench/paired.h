// Paired measurements: the same step with and without something, in turns. What is said is the median
// of the differences, with its 95 % interval; the mean stands beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

struct Interval {
  double low = 0, middle = 0, high = 0;
};

// Of the mean, with the normal's 95 %: there are hundreds of values.
inline Interval mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half = 1.96 * std::sqrt(squares / (n - 1) / n);
  return {mean - half, mean, mean + half};
}

// Of the median, by its order statistics: whatever the distribution, another process's interference
// among it.
inline Interval median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto at = [&](double rank) {
    return values[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  return {at(n / 2 - 0.98 * std::sqrt(n)), at(n / 2), at(n / 2 + 0.98 * std::sqrt(n))};
}

// The median of the differences, us.
inline double show(const char* what, const std::vector<double>& with,
                   const std::vector<double>& without) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < with.size(); ++i) differences.push_back(with[i] - without[i]);
  const double step = median_of(without).middle;
  const Interval median = median_of(differences), mean = mean_of(differences);
  std::printf("%-26s %+6.2f us, 95 %% [%+.2f, %+.2f]: %+.2f %% [%+.2f, %+.2f] of the step", what,
              median.middle, median.low, median.high, 100 * median.middle / step,
              100 * median.low / step, 100 * median.high / step);
  std::printf(" (mean %+.2f us [%+.2f, %+.2f])\n", mean.middle, mean.low, mean.high);
  return median.middle;
}
