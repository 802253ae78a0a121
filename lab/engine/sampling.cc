#include "lab/engine/sampling.h"

#include <algorithm>
#include <cmath>

#include "lab/kernels/choose.h"

namespace culprit::lab {
namespace {

// SplitMix64's finaliser: every bit of the input moves every bit of the output.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace

double uniform(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = mixed(mixed(seed) + (index + 1) * 0x9e3779b97f4a7c15U);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Sampler::Sampler(std::int64_t vocab) : candidates_(static_cast<std::size_t>(vocab)) {}

// Moves the candidates that top_p keeps to the front, best first; how many. They are few as a rule,
// so ever more of the best are sorted until they suffice.
std::size_t Sampler::keep_top_p(std::size_t kept, double top_p) {
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) total += candidates_[i].weight;
  for (std::size_t sorted = std::min<std::size_t>(64, kept);; sorted = std::min(sorted * 8, kept)) {
    const auto first = candidates_.begin();
    const auto middle = first + static_cast<std::ptrdiff_t>(sorted);
    std::partial_sort(first, middle, first + static_cast<std::ptrdiff_t>(kept), before);
    double sum = 0;
    for (std::size_t i = 0; i < sorted; ++i) {
      sum += candidates_[i].weight;
      if (sum >= top_p * total) return i + 1;
    }
    if (sorted == kept) return kept;
  }
}

std::int32_t Sampler::operator()(std::span<const float> logits, const Sampling& sampling,
                                 std::int64_t generated) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const std::int64_t best = argmax(logits.data(), count);
  if (sampling.temperature <= 0) return static_cast<std::int32_t>(best);
  const double highest = static_cast<double>(logits[static_cast<std::size_t>(best)]);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double logit = static_cast<double>(logits[i]);
    const double weight = std::exp((logit - highest) / sampling.temperature);
    candidates_[i] = {weight >= 0 ? weight : 0, static_cast<std::int32_t>(i)};
  }
  std::size_t kept = logits.size();
  if (sampling.top_k > 0 && sampling.top_k < count) {
    kept = static_cast<std::size_t>(sampling.top_k);
    const auto middle = candidates_.begin() + sampling.top_k;
    std::partial_sort(candidates_.begin(), middle, candidates_.begin() + count, before);
  }
  if (sampling.top_p < 1) kept = keep_top_p(kept, sampling.top_p);
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) total += candidates_[i].weight;
  double left = uniform(sampling.seed, static_cast<std::uint64_t>(generated)) * total;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    left -= candidates_[i].weight;
    if (left < 0) return candidates_[i].token;
  }
  return candidates_[kept - 1].token;
}

}  // namespace culprit::lab
