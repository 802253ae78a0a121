#include "lab/files/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace culprit::lab {

std::optional<std::int64_t> product_of(std::span<const std::int64_t> extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent == 0) return 0;
    if (product > kMostExtent / extent) return std::nullopt;
    product *= extent;
  }
  return product;
}

void Ranges::add(std::string_view name, const Stored& tensor) {
  if (tensor.bytes > 0) ranges_.push_back({name, &tensor});
}

Status Ranges::apart() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::less<>()(a.tensor->data, b.tensor->data);
  });
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    const Range &before = ranges_[i - 1], &after = ranges_[i];
    if (after.tensor->data - before.tensor->data < before.tensor->bytes)
      return Error{Error::Code::kBadInput,
                   fmt::format("tensors \"{}\" and \"{}\" share bytes", before.name, after.name),
                   after.tensor->where, "the file is damaged; fetch it again"};
  }
  return Ok{};
}

}  // namespace culprit::lab
