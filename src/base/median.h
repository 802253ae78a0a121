// The median of values: O(n), and a copy unless they are moved in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace culprit {

// Of an even number of values the upper of the two in the middle; of none, Value{}.
template <class Value>
Value upper_median(std::vector<Value> values) {
  if (values.empty()) return Value{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace culprit
