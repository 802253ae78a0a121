// What both containers check of a tensor's place: that its extents multiply to a size that exists, and
// that no byte belongs to two tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/files/checkpoint.h"

namespace culprit::lab {

inline constexpr std::int64_t kMostExtent = std::int64_t{1} << 62;

// None where it exceeds kMostExtent. No extents: a scalar, 1.
std::optional<std::int64_t> product_of(std::span<const std::int64_t> extents);

// The tensors of one file. Cost: n log n.
class Ranges {
 public:
  void add(std::string_view name, const Stored& tensor);  // both outlive this
  Status apart();  // an error names two tensors that share bytes

 private:
  struct Range {
    std::string_view name;
    const Stored* tensor;
  };
  std::vector<Range> ranges_;
};

}  // namespace culprit::lab
