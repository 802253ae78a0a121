// Noise: whether two lists of step times differ by more than the steps of each do among themselves.
// A rank test (Mann-Whitney U, two-sided), exact up to kExactSteps steps in all, else by the normal
// approximation with ties and continuity; and the 95 % interval of the difference of means (Welch).
// Nothing is drawn, so equal input gives equal output. Cost: O(n log n), exact O(n^4) of 60 steps.
#pragma once

#include <optional>
#include <span>

#include "base/id.h"

namespace culprit::compare {

inline constexpr std::size_t kExactSteps = 60;
inline constexpr double kSignificant = 0.01;  // p below it: one false alarm in a hundred

struct Noise {
  std::optional<double> p;          // none: too few steps ever to reach kSignificant
  std::optional<Nanos> half_width;  // none: fewer than two steps on a side
  bool apart = false;               // every step of one side is longer than every one of the other
};

Noise judge_noise(std::span<const Nanos> before, std::span<const Nanos> after);

// The probability of ranks at least as uneven, were both lists of one kind. For tests: `exact`.
double rank_test(std::span<const Nanos> before, std::span<const Nanos> after, bool exact);

}  // namespace culprit::compare
