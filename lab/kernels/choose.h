// Choices among scores: experts, positions, tokens. Ties go to the lower index everywhere, so that
// a choice does not depend on order or threads; NaN ranks below every number. Cost linear in n.
#pragma once

#include <cstdint>

namespace culprit::lab {

std::int64_t argmax(const float* x, std::int64_t n);

// The indices of the `k` largest, ascending; all n where k >= n. Returns how many. out: [min(k, n)].
std::int64_t top_k(const float* x, std::int64_t n, std::int64_t k, std::int32_t* out);

// How a router chooses; the same fields as the model's. Source: facts on models, section 3.
struct Routing {
  std::int64_t experts = 0, per_token = 0;   // at most 1024 experts
  std::int64_t groups = 1, groups_kept = 1;  // a group's score: its two best biased ones
  bool sigmoid = false, normalized = false;  // else softmax; chosen weights add up to 1
  float scale = 1;                           // of the weights, after normalising
};
// logits [experts], bias [experts] or null -> the chosen, best first: ids, weights [per_token].
void route(const Routing& routing, const float* logits, const float* bias, std::int32_t* ids,
           float* weights);

}  // namespace culprit::lab
