// A weight matrix where it lies: borrowed bytes and how to read them. [rows, cols] row by row; cols
// is what a linear layer sums over. Nothing is owned: a checkpoint's mapping or an arena must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace culprit::lab {

enum class Format : std::uint8_t {
  kF32,
  kF16,
  kBf16,   // block scales as below, where it was unpacked from kE4m3
  kE4m3,   // with `scale`, or with one float per 128 x 128 block
  kNvfp4,  // ModelOpt: codes, E4M3 block scales, `scale` = weight_scale_2, `input_scale`
  kQ8_0,
  kQ4_K,
  kQ6_K,
  kGgmlMxfp4,
  kGgmlNvfp4,
};
std::string_view format_name(Format format);  // "bf16", "nvfp4", "q8_0"
// The least number of columns, of which a row holds a multiple: 16 for kNvfp4, 256 for kQ4_K.
std::int64_t block_values(Format format);

struct Matrix {
  Format format = Format::kF32;
  std::int64_t rows = 0, cols = 0;
  const std::byte* data = nullptr;
  const std::byte* block_scales = nullptr;  // kNvfp4: E4M3 [rows, cols / 16]; kE4m3: float, or none
  std::int64_t scale_block = 0;             // kE4m3 with block scales: 128
  float scale = 1;                          // of the whole matrix
  float input_scale = 0;  // kNvfp4: of its activations; 0: activations stay wide (W4A16)

  bool empty() const { return data == nullptr; }
  std::int64_t row_bytes() const;  // of `data` alone
  std::int64_t bytes() const;      // what reading all of it moves, scales included
  // Rows [first, first + count) of it. Rows of FP8 block scales are shared: first % scale_block == 0.
  Matrix slice(std::int64_t first, std::int64_t count) const;
};

// The row as plain numbers; the definition that every kernel is held against. values: [cols].
void dequantize_row(const Matrix& matrix, std::int64_t row, float* values);

}  // namespace culprit::lab
