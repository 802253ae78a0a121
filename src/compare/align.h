// Alignment: which slot of one pattern stands where which slot of the other stood. Needleman-Wunsch
// over roles and places; names break ties, since they change between versions. A pair is of one role
// or of one name. What is left over of one name on both sides has moved, and is paired as well; so are
// the only two of a role that are called equally often.
// Cost: a table of (n + 1) (m + 1) bytes; n, m <= kMostSlots.
#pragma once

#include <string>
#include <vector>

#include "known/owner.h"
#include "store/trace.h"

namespace culprit::compare {

inline constexpr std::size_t kMostSlots = 4000;

// What a slot is compared by.
struct Mark {
  std::string_view name, base;  // base: the name without its template arguments
  std::string_view op;          // empty: not recorded
  known::Owner role = known::Owner::kOtherKernel;
  store::Dim3 grid{};      // {0,0,0}: not recorded
  std::int64_t calls = 0;  // in the median step
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a literal 0 in the generated comparison
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

struct Pair {
  int before = -1, after = -1;  // slots; -1: none
  bool anchor = false;          // of one name: what stands between two of them is one place
};

// In the order of the patterns. The sides swapped, the pairs are the same, swapped. Only the first
// `ordered_before` and `ordered_after` marks have an order; the others are paired by name.
std::vector<Pair> align(const std::vector<Mark>& before, std::size_t ordered_before,
                        const std::vector<Mark>& after, std::size_t ordered_after);

}  // namespace culprit::compare
