// The tensors of the model held against what a kernel wrote, and the parts of the step that cost too
// little: what a pool read rules out, each by its number.
#pragma once

#include <span>
#include <vector>

#include "verdict/verdict.h"

namespace culprit::verdict {

struct TensorVerdict {
  known::Tensor tensor;
  bool fits = false;  // the kernel's element count leaves room for it
};

// Every tensor of the model on one rank, without the KV pool: the usual wrong suspects first (experts,
// attention projections), the rest by nearness in size. Empty without a model.
std::vector<TensorVerdict> hold_against_model(const evidence::Evidence& evidence,
                                              const evidence::PoolRead& read);

// How many of the table's first entries are the usual wrong suspects.
std::size_t usual_suspects(const std::vector<TensorVerdict>& table);
// One hypothesis per tensor that does not fit: weights "w13-dequant", activations "hidden-cast".
void rule_out_tensors(evidence::Evidence& evidence, const evidence::PoolRead& read,
                      std::span<const TensorVerdict> table, Verdict& verdict);
// "batch-cast" and "layout-copy": what the kernel would be if it were no pool read.
void rule_out_other_copies(evidence::Evidence& evidence, const evidence::PoolRead& read,
                           Verdict& verdict);
// Owners that, removed whole, would save far less than the suspect costs.
void rule_out_owners(const evidence::Evidence& evidence, const Suspect& suspect, Verdict& verdict);

}  // namespace culprit::verdict
