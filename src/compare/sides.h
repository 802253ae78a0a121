// Sides: what is said about each recording, which steps of two are alike, and the budgets' difference.
// Internal to this layer.
#pragma once

#include "compare/compare.h"

namespace culprit::compare {

Side describe(const Input& input);
// Lengths of the steps that count, in time order.
std::vector<Nanos> lengths_of(const run::Run& run);
std::vector<BudgetDelta> budget_deltas(const evidence::Evidence& before,
                                       const evidence::Evidence& after);
// Notes about what makes the two less comparable: batches, devices, numbers of layers.
void note_differences(const Side& before, const Side& after, store::Notes& notes);

}  // namespace culprit::compare
