// Where tensor cores want the block scales of an NVFP4 matrix: padded to 128 rows and 4 columns, in
// tiles of 128 x 4 scales (512 bytes). Source: flashinfer get_sf_out_offset_128x4, fp4_quantization.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::lab {

struct PaddedScales {
  std::int64_t rows = 0, cols = 0;  // multiples of 128 and 4
  std::int64_t bytes() const { return rows * cols; }
};
PaddedScales padded_scales(std::int64_t rows, std::int64_t cols);
// Byte offset of scale (row, col) in the swizzled buffer; col counts blocks.
std::int64_t swizzled_offset(std::int64_t row, std::int64_t col, PaddedScales padded);
std::vector<std::uint8_t> swizzle(std::span<const std::uint8_t> linear, std::int64_t rows,
                                  std::int64_t cols);
std::vector<std::uint8_t> unswizzle(std::span<const std::uint8_t> swizzled, std::int64_t rows,
                                    std::int64_t cols);

}  // namespace culprit::lab
