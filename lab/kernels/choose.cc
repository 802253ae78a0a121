#include "lab/kernels/choose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace culprit::lab {
namespace {

constexpr std::int64_t kMaxExperts = 1024;

// Unsigned numbers in the order of the floats; NaN is 0, below all of them, and -0 equals 0.
std::uint32_t rank_of(float x) {
  if (std::isnan(x)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(x == 0 ? 0.0F : x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// The rank of the k-th largest, found eight bits at a time; `equal` of those that have it are wanted.
struct Threshold {
  std::uint32_t rank = 0;
  std::int64_t equal = 0;
};
Threshold kth_largest(const float* x, std::int64_t n, std::int64_t k) {
  Threshold found{0, k};
  std::uint32_t known = 0;  // which bits of found.rank are settled
  for (unsigned shift = 32; shift > 0;) {
    shift -= 8;
    std::array<std::int64_t, 256> counts{};
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t rank = rank_of(x[i]);
      if ((rank & known) == found.rank) ++counts[rank >> shift & 255U];
    }
    std::uint32_t digit = 255;
    while (counts[digit] < found.equal) found.equal -= counts[digit--];
    found.rank |= digit << shift;
    known |= 255U << shift;
  }
  return found;
}

// The best `k` of x by rank, ties to the lower index, best first.
void best_of(const float* x, std::int64_t n, std::int64_t k, std::int32_t* out) {
  std::array<bool, kMaxExperts> taken{};
  for (std::int64_t i = 0; i < k; ++i) {
    std::int64_t best = -1;
    for (std::int64_t j = 0; j < n; ++j)
      if (!taken.data()[j] && (best < 0 || rank_of(x[j]) > rank_of(x[best]))) best = j;
    taken.data()[best] = true;
    out[i] = static_cast<std::int32_t>(best);
  }
}

void score_experts(const Routing& routing, const float* logits, float* scores) {
  if (routing.sigmoid) {
    for (std::int64_t e = 0; e < routing.experts; ++e) scores[e] = 1 / (1 + std::exp(-logits[e]));
    return;
  }
  const float top = *std::max_element(logits, logits + routing.experts);
  float total = 0;
  for (std::int64_t e = 0; e < routing.experts; ++e) total += scores[e] = std::exp(logits[e] - top);
  for (std::int64_t e = 0; e < routing.experts; ++e) scores[e] /= total;
}

// Only the best groups stay in the choice; a group is as good as its two best experts together.
void drop_groups(const Routing& routing, float* choice) {
  const std::int64_t size = routing.experts / routing.groups;
  std::array<float, kMaxExperts> worth{};
  for (std::int64_t g = 0; g < routing.groups; ++g) {
    std::array<std::int32_t, 2> best{};
    best_of(choice + g * size, size, std::min<std::int64_t>(2, size), best.data());
    worth.data()[g] = choice[g * size + best[0]] + (size > 1 ? choice[g * size + best[1]] : 0);
  }
  std::array<std::int32_t, kMaxExperts> kept{};
  best_of(worth.data(), routing.groups, routing.groups_kept, kept.data());
  for (std::int64_t g = 0; g < routing.groups; ++g)
    if (std::find(kept.data(), kept.data() + routing.groups_kept, g) ==
        kept.data() + routing.groups_kept)
      std::fill_n(choice + g * size, size, -std::numeric_limits<float>::infinity());
}

}  // namespace

std::int64_t argmax(const float* x, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (std::isnan(x[best]) && !std::isnan(x[i]))) best = i;
  return best;
}

std::int64_t top_k(const float* x, std::int64_t n, std::int64_t k, std::int32_t* out) {
  k = std::min(k, n);
  if (k <= 0) return 0;
  Threshold threshold = kth_largest(x, n, k);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t rank = rank_of(x[i]);
    if (rank < threshold.rank) continue;
    if (rank == threshold.rank && threshold.equal-- <= 0) continue;
    out[count++] = static_cast<std::int32_t>(i);
  }
  return count;
}

void route(const Routing& routing, const float* logits, const float* bias, std::int32_t* ids,
           float* weights) {
  std::array<float, kMaxExperts> scores{}, choice{};
  score_experts(routing, logits, scores.data());
  for (std::int64_t e = 0; e < routing.experts; ++e)
    choice.data()[e] = scores.data()[e] + (bias != nullptr ? bias[e] : 0);
  if (routing.groups > 1) drop_groups(routing, choice.data());
  best_of(choice.data(), routing.experts, routing.per_token, ids);
  float total = 0;
  for (std::int64_t i = 0; i < routing.per_token; ++i) total += weights[i] = scores.data()[ids[i]];
  const float scale = routing.normalized ? routing.scale / total : routing.scale;
  for (std::int64_t i = 0; i < routing.per_token; ++i) weights[i] *= scale;
}

}  // namespace culprit::lab
