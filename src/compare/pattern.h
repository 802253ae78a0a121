// Pattern: what a step launches, as the list of its places. A model repeats its layers, so the order
// of kernels of the median step is folded: a stretch that comes k times in a row becomes one stretch
// of slots that each stand for k kernels. All used steps are then counted into the slots: the n-th
// kernel of a name belongs where the n-th of that name stands in the median step.
// Cost: O(n) for n kernels of a step that repeats; never more than 64 n.
#pragma once

#include <string_view>
#include <vector>

#include "evidence/evidence.h"

namespace culprit::compare {

struct Slot {
  store::StringId name;
  known::Owner role = known::Owner::kOtherKernel;
  run::GroupId group;        // of the most calls
  std::int64_t in_step = 0;  // kernels of the median step that it stands for
  std::int64_t calls = 0;    // over the used steps
  Nanos time = 0, exposed = 0;
};

// In order of launch. At most `most` slots: a step that does not repeat has one slot a name, and
// beyond that the first `most` names in order and the others behind them, aligned with nobody.
struct Pattern {
  std::vector<Slot> slots;
  std::size_t in_order = 0;  // slots whose order is that of the step; the others follow
};
Pattern find_pattern(const run::Run& run, const evidence::Evidence& evidence, std::size_t most);

// For tests: folds a list of symbols; each item lists the places that it stands for.
std::vector<std::vector<std::uint32_t>> fold(const std::vector<std::uint32_t>& symbols);

}  // namespace culprit::compare
