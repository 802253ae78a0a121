// align: the places of one sequence's symbols in another, in order, where only one answer is
// possible. A pair counts if it is the same whether the part is laid into the whole as early or as
// late as it can be; what could stand at two places stands at none.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::run {

using Symbols = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kUnpaired = 0xffffffffU;

// For each symbol of `part` its place in `whole`, rising; kUnpaired where there is none or more than
// one. Symbols of `part` that are not in `whole` are left out. O(part + whole) where nothing is left
// out; else O(part x whole), and nothing is paired where that is too much.
std::vector<std::uint32_t> pair_up(const Symbols& part, const Symbols& whole);

}  // namespace culprit::run
