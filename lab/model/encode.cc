#include "lab/model/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr std::size_t kBlock = static_cast<std::size_t>(kNvfp4Block);

std::size_t size_of(std::int64_t n) { return static_cast<std::size_t>(n); }
std::int64_t blocks_of(std::int64_t n) { return (n + kFp8Block - 1) / kFp8Block; }

template <class Value>
void store(std::byte* to, std::int64_t index, Value value) {
  std::memcpy(to + index * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

template <class Block>
void store_blocks(std::span<const float> row, std::byte* to) {
  for (std::size_t first = 0; first < row.size(); first += size_of(Block::kValues)) {
    Block block;
    quantize(row.subspan(first, size_of(Block::kValues)), &block);
    store(to, static_cast<std::int64_t>(first) / Block::kValues, block);
  }
}

void store_row(Format format, std::span<const float> row, std::byte* to) {
  switch (format) {
    case Format::kF32:
      std::memcpy(to, row.data(), row.size_bytes());
      return;
    case Format::kF16:
      for (std::size_t i = 0; i < row.size(); ++i)
        store(to, static_cast<std::int64_t>(i), to_half(row[i]));
      return;
    case Format::kBf16:
      for (std::size_t i = 0; i < row.size(); ++i)
        store(to, static_cast<std::int64_t>(i), to_bf16(row[i]));
      return;
    case Format::kQ8_0:
      return store_blocks<BlockQ8_0>(row, to);
    case Format::kQ4_K:
      return store_blocks<BlockQ4_K>(row, to);
    case Format::kQ6_K:
      return store_blocks<BlockQ6_K>(row, to);
    case Format::kGgmlMxfp4:
      return store_blocks<BlockMxfp4>(row, to);
    case Format::kE4m3:
    case Format::kNvfp4:
    case Format::kGgmlNvfp4:
      return;  // not row by row
  }
}

// One block of 128 rows, or what is left of one: a scale per 128 columns, then the codes.
void store_e4m3(std::span<const float> values, std::int64_t cols, std::byte* data,
                std::byte* scales) {
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / cols;
  for (std::int64_t first = 0; first < cols; first += kFp8Block) {
    const std::int64_t end = std::min(first + kFp8Block, cols);
    float amax = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = first; c < end; ++c)
        amax = std::max(amax, std::fabs(values[size_of(r * cols + c)]));
    const float scale = amax / 448;
    store(scales, first / kFp8Block, scale);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = first; c < end; ++c)
        store(data, r * cols + c, to_e4m3(values[size_of(r * cols + c)] / scale));
  }
}

// ModelOpt's codes and scales of 64 values as ggml lays them out; the tensor's scale stays apart.
void store_ggml_nvfp4(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                      std::byte* to) {
  for (std::size_t first = 0; first < scales.size(); first += 4) {
    BlockNvfp4 block{};
    for (std::size_t sub = 0; sub < 4; ++sub) {
      block.d[sub] = scales[first + sub];
      const std::uint8_t* const from = &codes[(first + sub) * kBlock / 2];
      for (std::size_t i = 0; i < kBlock; ++i) {
        const int code = from[i / 2] >> (i % 2 * 4) & 15;
        std::uint8_t& byte = block.qs[sub * kBlock / 2 + i % (kBlock / 2)];
        byte = static_cast<std::uint8_t>(byte | code << (i < kBlock / 2 ? 0 : 4));
      }
    }
    store(to, static_cast<std::int64_t>(first) / 4, block);
  }
}

}  // namespace

// For a tensor's levels and scale: by the largest magnitude of a block, its scale and every code.
struct Encoder::Nvfp4Table {
  double deviation = 0;
  Level largest = 0;
  std::array<std::uint8_t, 128> scales{};
  std::array<std::array<std::uint8_t, 256>, 128> codes{};

  Nvfp4Table(double of_deviation, Level of_largest, std::span<const float, 256> values)
      : deviation(of_deviation), largest(of_largest) {
    const float scale_2 = values[largest] / (6.0F * 448.0F);
    for (std::size_t m = 0; m < 128; ++m) {
      scales[m] = nvfp4_scale(values[m], scale_2);
      const float step = from_e4m3(scales[m]) * scale_2;
      for (std::size_t level = 0; level < 256; ++level)
        codes[m][level] = to_e2m1(values[level] / step);
    }
  }
};

Encoder::Encoder() = default;
Encoder::~Encoder() = default;

EncodedSize encoded_size(Format format, std::int64_t rows, std::int64_t cols) {
  Matrix matrix;
  matrix.format = format;
  matrix.rows = rows;
  matrix.cols = cols;
  EncodedSize size{rows * matrix.row_bytes(), 0};
  if (format == Format::kNvfp4) size.scales = rows * (cols / kNvfp4Block);
  if (format == Format::kE4m3)
    size.scales = blocks_of(rows) * blocks_of(cols) * static_cast<std::int64_t>(sizeof(float));
  return size;
}

float Encoder::scale_of(const LevelMatrix& matrix, Format format) {
  if (format != Format::kNvfp4 && format != Format::kGgmlNvfp4) return 1;
  return level_values(matrix.deviation)[matrix.largest] / (6.0F * 448.0F);
}

void Encoder::encode_nvfp4(const LevelMatrix& matrix, std::span<const Level> row,
                           std::uint8_t* codes, std::uint8_t* scales) {
  if (!nvfp4_ || nvfp4_->deviation != matrix.deviation || nvfp4_->largest != matrix.largest)
    nvfp4_ = std::make_unique<Nvfp4Table>(matrix.deviation, matrix.largest, values_);
  for (std::size_t first = 0; first < row.size(); first += kBlock) {
    const Level* const levels = &row[first];
    Level largest = 0;
    for (std::size_t i = 0; i < kBlock; ++i)
      largest = std::max<Level>(largest, levels[i] & kLargestLevel);
    scales[first / kBlock] = nvfp4_->scales[largest];
    const auto& code = nvfp4_->codes[largest];
    for (std::size_t i = 0; i < kBlock; i += 2)
      codes[(first + i) / 2] =
          static_cast<std::uint8_t>(code[levels[i]] | code[levels[i + 1]] << 4);
  }
}

void Encoder::encode_e4m3(const LevelMatrix& matrix, std::int64_t first, std::int64_t count,
                          std::byte* data, std::byte* scales) {
  std::vector<Level> levels(size_of(matrix.cols));
  std::vector<float> values;
  for (std::int64_t r = 0; r < count; ++r) {
    matrix.fill(first + r, levels);
    for (const Level level : levels) values.push_back(values_[level]);
    if (r % kFp8Block != kFp8Block - 1 && r != count - 1) continue;
    store_e4m3(values, matrix.cols, data, scales);
    data += values.size();
    scales += size_of(blocks_of(matrix.cols)) * sizeof(float);
    values.clear();
  }
}

void Encoder::encode(const LevelMatrix& matrix, Format format, std::int64_t first,
                     std::int64_t count, std::byte* data, std::byte* scales) {
  if (deviation_ != matrix.deviation) {
    deviation_ = matrix.deviation;
    values_ = level_values(deviation_);
  }
  if (format == Format::kE4m3) return encode_e4m3(matrix, first, count, data, scales);
  const EncodedSize row = encoded_size(format, 1, matrix.cols);
  std::vector<Level> levels(size_of(matrix.cols));
  std::vector<float> values(levels.size());
  std::vector<std::uint8_t> codes(levels.size() / 2), code_scales(levels.size() / kBlock);
  for (std::int64_t r = 0; r < count; ++r) {
    matrix.fill(first + r, levels);
    std::byte* const to = data + r * row.data;
    if (format == Format::kNvfp4) {
      encode_nvfp4(matrix, levels, reinterpret_cast<std::uint8_t*>(to),
                   reinterpret_cast<std::uint8_t*>(scales + r * row.scales));
    } else if (format == Format::kGgmlNvfp4) {
      encode_nvfp4(matrix, levels, codes.data(), code_scales.data());
      store_ggml_nvfp4(codes, code_scales, to);
    } else {
      for (std::size_t i = 0; i < levels.size(); ++i) values[i] = values_[levels[i]];
      store_row(format, values, to);
    }
  }
}

}  // namespace culprit::lab
