// Share: which process summarizes which trace. Largest first, each to whoever has least: the last to
// finish is at most a third behind the best division there is (Graham, 1969). Every process works it out
// for itself from the same list. O(n log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace culprit::fleet {

// For each part the indices of its traces, largest first. Equal sizes go by index.
std::vector<std::vector<std::size_t>> share_out(const std::vector<std::int64_t>& bytes,
                                                std::size_t parts);

}  // namespace culprit::fleet
