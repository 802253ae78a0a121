// Matrix: rows of every format as plain numbers, at odd addresses, whole and as slices.
#include "lab/number/matrix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>

#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kRows = 6, kCols = 512;

struct Owned {  // bytes one past an aligned address
  std::vector<std::byte> bytes;
  const std::byte* data() const { return bytes.data() + 1; }
};

template <class Value>
Owned keep(std::span<const Value> values) {
  Owned owned{std::vector<std::byte>(values.size_bytes() + 1)};
  std::memcpy(owned.bytes.data() + 1, values.data(), values.size_bytes());
  return owned;
}

std::vector<float> some_values() {
  std::mt19937 random(41);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> values(static_cast<std::size_t>(kRows * kCols));
  for (float& v : values) v = normal(random);
  return values;
}

// Row by row, and again through a slice of rows 2 to 4.
void expect_values(const Matrix& matrix, std::span<const float> values) {
  std::vector<float> row(static_cast<std::size_t>(matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    dequantize_row(matrix, r, row.data());
    for (std::int64_t c = 0; c < matrix.cols; ++c)
      ASSERT_EQ(row[static_cast<std::size_t>(c)],
                values[static_cast<std::size_t>(r * matrix.cols + c)])
          << format_name(matrix.format) << " row " << r << " column " << c;
  }
  if (matrix.scale_block > 1) return;
  const Matrix part = matrix.slice(2, 3);
  EXPECT_EQ(part.rows, 3);
  for (std::int64_t r = 0; r < 3; ++r) {
    dequantize_row(part, r, row.data());
    for (std::int64_t c = 0; c < matrix.cols; ++c)
      ASSERT_EQ(row[static_cast<std::size_t>(c)],
                values[static_cast<std::size_t>((r + 2) * matrix.cols + c)]);
  }
}

Matrix matrix_of(Format format, const Owned& owned) {
  Matrix matrix;
  matrix.format = format;
  matrix.rows = kRows;
  matrix.cols = kCols;
  matrix.data = owned.data();
  return matrix;
}

TEST(Matrix, PlainNumbers) {
  std::vector<float> values = some_values();
  const Owned f32 = keep<float>(values);
  expect_values(matrix_of(Format::kF32, f32), values);
  EXPECT_EQ(matrix_of(Format::kF32, f32).bytes(), kRows * kCols * 4);

  std::vector<std::uint16_t> halves;
  std::vector<float> rounded;
  for (const float v : values) {
    halves.push_back(to_half(v));
    rounded.push_back(from_half(halves.back()));
  }
  const Owned f16 = keep<std::uint16_t>(halves);
  expect_values(matrix_of(Format::kF16, f16), rounded);

  for (std::size_t i = 0; i < values.size(); ++i) {
    halves[i] = to_bf16(values[i]).bits;
    rounded[i] = from_bf16(to_bf16(values[i]));
  }
  const Owned bf16 = keep<std::uint16_t>(halves);
  expect_values(matrix_of(Format::kBf16, bf16), rounded);
  EXPECT_EQ(matrix_of(Format::kBf16, bf16).bytes(), kRows * kCols * 2);
}

TEST(Matrix, OneScaleForAll) {
  const std::vector<float> values = some_values();
  const Owned f32 = keep<float>(values);
  Matrix matrix = matrix_of(Format::kF32, f32);
  matrix.scale = 0.25F;
  std::vector<float> scaled;
  for (const float v : values) scaled.push_back(v * 0.25F);
  expect_values(matrix, scaled);
}

TEST(Matrix, E4m3) {
  std::vector<std::uint8_t> codes;
  std::vector<float> expected;
  for (const float v : some_values()) {
    codes.push_back(to_e4m3(v * 1000));
    expected.push_back(from_e4m3(codes.back()) * 0.001F);
  }
  const Owned owned = keep<std::uint8_t>(codes);
  Matrix matrix = matrix_of(Format::kE4m3, owned);
  matrix.scale = 0.001F;
  expect_values(matrix, expected);
  EXPECT_EQ(matrix.bytes(), kRows * kCols);
}

TEST(Matrix, E4m3WithBlockScales) {
  constexpr std::int64_t kTall = 300, kWide = 200;  // 3 x 2 blocks, neither whole
  std::vector<std::uint8_t> codes;
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < kTall * kWide; ++i)
    codes.push_back(static_cast<std::uint8_t>(random() % 127));
  const std::vector<float> scales{0.5F, 1.25F, 3, 0.01F, 7, 9};
  const Owned owned = keep<std::uint8_t>(codes), owned_scales = keep<float>(scales);
  Matrix matrix = matrix_of(Format::kE4m3, owned);
  matrix.rows = kTall, matrix.cols = kWide;
  matrix.block_scales = owned_scales.data();
  matrix.scale_block = 128;
  std::vector<float> expected;
  for (std::int64_t r = 0; r < kTall; ++r)
    for (std::int64_t c = 0; c < kWide; ++c)
      expected.push_back(from_e4m3(codes[static_cast<std::size_t>(r * kWide + c)]) *
                         scales[static_cast<std::size_t>(r / 128 * 2 + c / 128)]);
  expect_values(matrix, expected);
  EXPECT_EQ(matrix.bytes(), kTall * kWide + 6 * 4);
  const Matrix part = matrix.slice(128, 172);
  std::vector<float> row(static_cast<std::size_t>(kWide));
  dequantize_row(part, 171, row.data());
  EXPECT_EQ(row, std::vector<float>(expected.end() - kWide, expected.end()));
}

TEST(Matrix, Nvfp4) {
  const Nvfp4 quantized = quantize_nvfp4(some_values(), kRows, kCols);
  const Owned codes = keep<std::uint8_t>(quantized.codes),
              scales = keep<std::uint8_t>(quantized.scales);
  Matrix matrix = matrix_of(Format::kNvfp4, codes);
  matrix.block_scales = scales.data();
  matrix.scale = quantized.scale_2;
  expect_values(matrix, dequantize(quantized));
  EXPECT_EQ(matrix.row_bytes(), kCols / 2);
  EXPECT_EQ(matrix.bytes(), kRows * kCols * 9 / 16);
}

template <class Block>
void expect_blocks(Format format, std::string_view name, std::int64_t bytes_per_block) {
  const std::vector<float> values = some_values();
  std::vector<Block> blocks(values.size() / static_cast<std::size_t>(Block::kValues));
  quantize(values, blocks.data());
  std::vector<float> expected(values.size());
  dequantize(blocks.data(), expected);
  const Owned owned = keep<Block>(blocks);
  const Matrix matrix = matrix_of(format, owned);
  expect_values(matrix, expected);
  EXPECT_EQ(format_name(format), name);
  EXPECT_EQ(matrix.row_bytes(), kCols / Block::kValues * bytes_per_block);
}

TEST(Matrix, Blocks) {
  expect_blocks<BlockQ8_0>(Format::kQ8_0, "q8_0", 34);
  expect_blocks<BlockQ4_K>(Format::kQ4_K, "q4_k", 144);
  expect_blocks<BlockQ6_K>(Format::kQ6_K, "q6_k", 210);
  expect_blocks<BlockMxfp4>(Format::kGgmlMxfp4, "mxfp4", 17);
  expect_blocks<BlockNvfp4>(Format::kGgmlNvfp4, "ggml-nvfp4", 36);
}

}  // namespace
}  // namespace culprit::lab
