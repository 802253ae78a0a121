// The swizzle against its definition as a permutation: [rows / 128, 4, 32, cols / 4, 4] to
// [rows / 128, cols / 4, 32, 4, 4].
#include "lab/number/swizzle.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::lab {
namespace {

std::vector<std::uint8_t> permuted(const std::vector<std::uint8_t>& linear, std::size_t rows,
                                   std::size_t cols) {
  const std::size_t tiles_down = (rows + 127) / 128, tiles_across = (cols + 3) / 4;
  std::vector<std::uint8_t> result;
  for (std::size_t a = 0; a < tiles_down; ++a)
    for (std::size_t d = 0; d < tiles_across; ++d)
      for (std::size_t c = 0; c < 32; ++c)
        for (std::size_t b = 0; b < 4; ++b)
          for (std::size_t e = 0; e < 4; ++e) {
            const std::size_t row = (a * 4 + b) * 32 + c, col = d * 4 + e;
            result.push_back(row < rows && col < cols ? linear[row * cols + col] : 0);
          }
  return result;
}

TEST(Swizzle, EqualsThePermutationForRaggedShapes) {
  std::mt19937 random(1);
  const std::pair<int, int> shapes[] = {{1, 1},    {1, 384},  {127, 3}, {128, 4},      {129, 5},
                                        {300, 10}, {512, 16}, {31, 7},  {6144 / 8, 16}};
  for (const auto& [rows, cols] : shapes) {
    std::vector<std::uint8_t> linear(static_cast<std::size_t>(rows * cols));
    for (auto& byte : linear) byte = static_cast<std::uint8_t>(1 + random() % 255);
    const auto swizzled = swizzle(linear, rows, cols);
    EXPECT_EQ(swizzled,
              permuted(linear, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)))
        << rows << " x " << cols;
    EXPECT_EQ(static_cast<std::int64_t>(swizzled.size()), padded_scales(rows, cols).bytes());
    EXPECT_EQ(unswizzle(swizzled, rows, cols), linear) << rows << " x " << cols;
  }
}

TEST(Swizzle, PadsToWholeTiles) {
  EXPECT_EQ(padded_scales(1, 384).bytes(), 49152);  // one row of GLM-5's hidden state
  EXPECT_EQ(padded_scales(300, 10).rows, 384);
  EXPECT_EQ(padded_scales(300, 10).cols, 12);
  EXPECT_EQ(swizzled_offset(0, 4, padded_scales(128, 8)), 512);
  EXPECT_EQ(swizzled_offset(33, 2, padded_scales(128, 8)), 16 + 4 + 2);
}

}  // namespace
}  // namespace culprit::lab
