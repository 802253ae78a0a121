// Launch geometry inverted to a number of elements: (grid - 1) x W < N <= grid x W, an interval
// with W candidates. It is exact only with a second fact: recorded dims, or divisibility by a known
// row length. See kernel_name.h for W.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "known/kernel_name.h"

namespace culprit::known {

struct ElementInterval {
  std::int64_t min = 0;  // smallest N that fits
  std::int64_t max = 0;  // largest N that fits; min == max: exact
  bool contains(std::int64_t n) const { return min <= n && n <= max; }
};

struct Geometry {
  std::array<std::int32_t, 3> grid{};  // 0: not recorded
  std::array<std::int32_t, 3> block{};
};

// W, the elements of one block as launched; 0 when the rule is not linear or the block contradicts
// the name.
std::int64_t work_of_block(const KernelInfo&, const Geometry&);
// None when the rule does not invert, the grid was not recorded, or the block contradicts the name.
std::optional<ElementInterval> elements_from_grid(const KernelInfo&, const Geometry&);
// Rows of a kernel with one block (in x) per row; none for every other rule.
std::optional<std::int64_t> rows_from_grid(const KernelInfo&, const Geometry&);
// The interval's multiples of `divisor`: none = refuted; one = exact (min == max); several =
// smallest and largest.
std::optional<ElementInterval> multiples_within(const ElementInterval&, std::int64_t divisor);
// PyTorch splits a tensor for 32-bit indexing when numel or any operand's byte extent exceeds 2^31
// - 1, halving the largest dimension recursively: the number of launches per call for `rows` x
// `row_elements` (1, 2, 4, ...). Source: ATen TensorIterator.cpp can_use_32bit_indexing /
// with_32bit_indexing.
int launches_for_32bit_indexing(std::int64_t rows, std::int64_t row_elements,
                                int max_element_bytes);

}  // namespace culprit::known
