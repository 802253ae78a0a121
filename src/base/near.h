// Near names: what the user may have meant by an unknown flag, GPU, model or column. ASCII case
// does not count. Near means: few edits for the length (insert, delete, replace, swap neighbours),
// or one name begins with or holds the other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace culprit {

// Up to `limit` of `names`, nearest first, ties in the given order. Words are compared by their
// first 64 bytes. Cost: O(64 x 64) per name.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names,
                                    std::size_t limit = 3);
// "did you mean: H100 SXM, H100 PCIe?", or `otherwise` when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view otherwise);

}  // namespace culprit
