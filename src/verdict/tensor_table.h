// The tensors of the model held against what a kernel wrote, and the parts of the step that cost too
// little: what a pool read rules out, each by its number.
#pragma once

#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace culprit::verdict {

struct TensorVerdict {
  known::Tensor tensor;
  bool fits = false;  // the kernel's element count leaves room for it
};

// Every tensor of the model on one rank, without the KV pool; empty without a model.
std::vector<TensorVerdict> hold_against_model(const evidence::Evidence& evidence,
                                              const evidence::PoolRead& read);

// One hypothesis per weight that does not fit ("w13-dequant"), and "batch-cast" for activations.
void rule_out_tensors(evidence::Evidence& evidence, const evidence::PoolRead& read,
                      const std::vector<TensorVerdict>& table, Verdict& verdict);
// Owners that, removed whole, would save far less than the suspect costs.
void rule_out_owners(const evidence::Evidence& evidence, const Suspect& suspect, Verdict& verdict);

}  // namespace culprit::verdict
