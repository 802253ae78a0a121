#include "lab/number/swizzle.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kTileRows = 128, kTileCols = 4, kTileBytes = kTileRows * kTileCols;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Calls visit(offset in the linear buffer, offset in the swizzled one) for every scale.
template <class Visit>
void for_each_scale(std::int64_t rows, std::int64_t cols, const Visit& visit) {
  const PaddedScales padded = padded_scales(rows, cols);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      visit(static_cast<std::size_t>(row * cols + col),
            static_cast<std::size_t>(swizzled_offset(row, col, padded)));
}

}  // namespace

PaddedScales padded_scales(std::int64_t rows, std::int64_t cols) {
  return {round_up(rows, kTileRows), round_up(cols, kTileCols)};
}

std::int64_t swizzled_offset(std::int64_t row, std::int64_t col, PaddedScales padded) {
  const std::int64_t tile = row / kTileRows * (padded.cols / kTileCols) + col / kTileCols;
  return tile * kTileBytes + row % 32 * 16 + row % kTileRows / 32 * 4 + col % kTileCols;
}

std::vector<std::uint8_t> swizzle(std::span<const std::uint8_t> linear, std::int64_t rows,
                                  std::int64_t cols) {
  std::vector<std::uint8_t> swizzled(
      static_cast<std::size_t>(padded_scales(rows, cols).bytes()));  // the padding stays zero
  for_each_scale(rows, cols,
                 [&](std::size_t from, std::size_t to) { swizzled[to] = linear[from]; });
  return swizzled;
}

std::vector<std::uint8_t> unswizzle(std::span<const std::uint8_t> swizzled, std::int64_t rows,
                                    std::int64_t cols) {
  std::vector<std::uint8_t> linear(static_cast<std::size_t>(rows * cols));
  for_each_scale(rows, cols,
                 [&](std::size_t to, std::size_t from) { linear[to] = swizzled[from]; });
  return linear;
}

}  // namespace culprit::lab
