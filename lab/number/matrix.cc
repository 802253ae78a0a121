#include "lab/number/matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

struct Layout {
  std::string_view name;
  std::int64_t block_values, block_bytes;
};
// By Format.
constexpr std::array<Layout, 10> kLayouts{
    {{"f32", 1, 4},
     {"f16", 1, 2},
     {"bf16", 1, 2},
     {"e4m3", 1, 1},
     {"nvfp4", kNvfp4Block, kNvfp4Block / 2},
     {"q8_0", BlockQ8_0::kValues, sizeof(BlockQ8_0)},
     {"q4_k", BlockQ4_K::kValues, sizeof(BlockQ4_K)},
     {"q6_k", BlockQ6_K::kValues, sizeof(BlockQ6_K)},
     {"mxfp4", BlockMxfp4::kValues, sizeof(BlockMxfp4)},
     {"ggml-nvfp4", BlockNvfp4::kValues, sizeof(BlockNvfp4)}}};
static_assert(kLayouts.size() == static_cast<std::size_t>(Format::kGgmlNvfp4) + 1);

const Layout& layout_of(Format format) { return kLayouts[static_cast<std::size_t>(format)]; }

std::int64_t blocks_of(std::int64_t n, std::int64_t block) { return (n + block - 1) / block; }

// The float at index i, wherever it lies.
template <class Value>
Value load(const std::byte* data, std::int64_t i) {
  Value value;
  std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class Block>
void dequantize_blocks(const std::byte* data, std::span<float> values) {
  // Blocks are read one by one, through a copy: a row of a file may begin at an odd address.
  for (std::size_t first = 0; first < values.size(); first += std::size_t{Block::kValues}) {
    const auto block = load<Block>(data, static_cast<std::int64_t>(first) / Block::kValues);
    dequantize(&block, values.subspan(first, std::size_t{Block::kValues}));
  }
}

// By the scales of their blocks, where there are some: kE4m3 and what was unpacked from it.
void scale_blocks(const Matrix& m, std::int64_t row, float* values) {
  if (m.block_scales == nullptr) return;
  const std::int64_t block_row = row / m.scale_block * blocks_of(m.cols, m.scale_block);
  for (std::int64_t i = 0; i < m.cols; ++i)
    values[i] *= load<float>(m.block_scales, block_row + i / m.scale_block);
}

void dequantize_nvfp4(const Matrix& m, std::int64_t row, const std::byte* data, float* values) {
  for (std::int64_t i = 0; i < m.cols; ++i) {
    const auto pair = load<std::uint8_t>(data, i / 2);
    const std::int64_t block = (row * m.cols + i) / kNvfp4Block;
    values[i] = from_e2m1(static_cast<std::uint8_t>(i % 2 == 0 ? pair & 15 : pair >> 4)) *
                from_e4m3(load<std::uint8_t>(m.block_scales, block));
  }
}

void decode_row(const Matrix& m, std::int64_t row, std::span<float> values) {
  const std::byte* const data = m.data + row * m.row_bytes();
  switch (m.format) {
    case Format::kF32:
      for (std::int64_t i = 0; i < m.cols; ++i)
        values[static_cast<std::size_t>(i)] = load<float>(data, i);
      return;
    case Format::kF16:
      for (std::int64_t i = 0; i < m.cols; ++i)
        values[static_cast<std::size_t>(i)] = from_half(load<std::uint16_t>(data, i));
      return;
    case Format::kBf16:
      for (std::int64_t i = 0; i < m.cols; ++i)
        values[static_cast<std::size_t>(i)] = from_bf16(load<Bf16>(data, i));
      return scale_blocks(m, row, values.data());
    case Format::kE4m3:
      for (std::int64_t i = 0; i < m.cols; ++i)
        values[static_cast<std::size_t>(i)] = from_e4m3(load<std::uint8_t>(data, i));
      return scale_blocks(m, row, values.data());
    case Format::kNvfp4:
      return dequantize_nvfp4(m, row, data, values.data());
    case Format::kQ8_0:
      return dequantize_blocks<BlockQ8_0>(data, values);
    case Format::kQ4_K:
      return dequantize_blocks<BlockQ4_K>(data, values);
    case Format::kQ6_K:
      return dequantize_blocks<BlockQ6_K>(data, values);
    case Format::kGgmlMxfp4:
      return dequantize_blocks<BlockMxfp4>(data, values);
    case Format::kGgmlNvfp4:
      return dequantize_blocks<BlockNvfp4>(data, values);
  }
}

}  // namespace

std::string_view format_name(Format format) { return layout_of(format).name; }

std::int64_t block_values(Format format) { return layout_of(format).block_values; }

std::int64_t Matrix::row_bytes() const {
  return cols / layout_of(format).block_values * layout_of(format).block_bytes;
}

std::int64_t Matrix::bytes() const {
  std::int64_t scales = 0;
  if (format == Format::kNvfp4) scales = rows * (cols / kNvfp4Block);
  if (format != Format::kNvfp4 && block_scales != nullptr)
    scales = blocks_of(rows, scale_block) * blocks_of(cols, scale_block) *
             static_cast<std::int64_t>(sizeof(float));
  return rows * row_bytes() + scales;
}

Matrix Matrix::slice(std::int64_t first, std::int64_t count) const {
  Matrix part = *this;
  part.rows = count;
  part.data = data + first * row_bytes();
  if (format == Format::kNvfp4) part.block_scales = block_scales + first * (cols / kNvfp4Block);
  if (format != Format::kNvfp4 && block_scales != nullptr)
    part.block_scales = block_scales + first / scale_block * blocks_of(cols, scale_block) *
                                           static_cast<std::int64_t>(sizeof(float));
  return part;
}

void dequantize_row(const Matrix& matrix, std::int64_t row, float* values) {
  decode_row(matrix, row, {values, static_cast<std::size_t>(matrix.cols)});
  if (matrix.scale == 1) return;
  for (std::int64_t i = 0; i < matrix.cols; ++i) values[i] *= matrix.scale;
}

}  // namespace culprit::lab
