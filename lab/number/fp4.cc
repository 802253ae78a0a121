#include "lab/number/fp4.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr std::array<int, 16> kDoubled{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr std::array<float, 16> kValues{0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                        -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
constexpr float kLargestE2m1 = 6, kLargestE4m3 = 448;

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::fabs(value));  // a NaN is passed over
  return largest;
}

// Codes of values / step, two to a byte, the even one low.
void pack(std::span<const float> values, float step, std::uint8_t* codes) {
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const unsigned low = to_e2m1(values[i] / step), high = to_e2m1(values[i + 1] / step);
    codes[i / 2] = static_cast<std::uint8_t>(high << 4 | low);
  }
}

std::uint8_t code_at(const std::vector<std::uint8_t>& codes, std::size_t i) {
  return static_cast<std::uint8_t>(i % 2 == 0 ? codes[i / 2] & 15U : codes[i / 2] >> 4U);
}

std::size_t elements(std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

}  // namespace

float from_e2m1(std::uint8_t code) { return kValues[code & 15U]; }
int doubled_e2m1(std::uint8_t code) { return kDoubled[code & 15U]; }

std::uint8_t to_e2m1(float value) {
  const float size = std::fabs(value);
  // A tie goes to the even code: up at 0.75, 1.75 and 3.5, down at the others. NaN passes no bound.
  const int code = int{size > 0.25F} + int{size >= 0.75F} + int{size > 1.25F} + int{size >= 1.75F} +
                   int{size > 2.5F} + int{size >= 3.5F} + int{size > 5.0F};
  return static_cast<std::uint8_t>(code | (value < 0 ? 8 : 0));
}

std::uint8_t nvfp4_scale(float block_amax, float scale_2) {
  const float exact = block_amax == 0 ? 1 : block_amax / (kLargestE2m1 * scale_2);
  return to_e4m3(std::clamp(exact, 0x1p-9F, kLargestE4m3));
}

Nvfp4 quantize_nvfp4(std::span<const float> weights, std::int64_t rows, std::int64_t cols) {
  constexpr auto kBlock = static_cast<std::size_t>(kNvfp4Block);
  const std::size_t n = elements(rows, cols);
  Nvfp4 result{rows, cols, std::vector<std::uint8_t>(n / 2), std::vector<std::uint8_t>(n / kBlock),
               largest_magnitude(weights) / (kLargestE2m1 * kLargestE4m3)};
  for (std::size_t block = 0; block < result.scales.size(); ++block) {
    const auto values = weights.subspan(block * kBlock, kBlock);
    const float amax = largest_magnitude(values);
    result.scales[block] = nvfp4_scale(amax, result.scale_2);
    if (amax == 0) continue;  // its codes are 0; where the whole tensor is, so is scale_2
    pack(values, from_e4m3(result.scales[block]) * result.scale_2,
         &result.codes[block * kBlock / 2]);
  }
  return result;
}

std::vector<float> dequantize(const Nvfp4& matrix) {
  std::vector<float> values(elements(matrix.rows, matrix.cols));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint8_t scale = matrix.scales[i / static_cast<std::size_t>(kNvfp4Block)];
    values[i] = from_e2m1(code_at(matrix.codes, i)) * from_e4m3(scale) * matrix.scale_2;
  }
  return values;
}

void quantize_activations(std::span<const float> row, float scale, std::uint8_t* codes,
                          std::uint8_t* scales) {
  constexpr auto kBlock = static_cast<std::size_t>(kNvfp4Block);
  const float global = 1 / scale;
  for (std::size_t first = 0; first < row.size(); first += kBlock) {
    const auto values = row.subspan(first, kBlock);
    const std::uint8_t block_scale = to_e4m3(global * largest_magnitude(values) / kLargestE2m1);
    scales[first / kBlock] = block_scale;
    if (block_scale == 0)
      std::fill_n(codes + first / 2, kBlock / 2, std::uint8_t{0});
    else
      pack(values, from_e4m3(block_scale) / global, codes + first / 2);
  }
}

std::uint8_t mxfp4_scale(float amax) {
  if (amax == 0) return 0;
  constexpr int kLargestExponent = 2, kBias = 127, kLargestCode = 254;  // E2M1 reaches 1.5 x 2^2
  return static_cast<std::uint8_t>(
      std::clamp(std::ilogb(amax) - kLargestExponent, -kBias, kLargestCode - kBias) + kBias);
}

Mxfp4 quantize_mxfp4(std::span<const float> weights, std::int64_t rows, std::int64_t cols) {
  constexpr auto kBlock = static_cast<std::size_t>(kMxfp4Block);
  const std::size_t n = elements(rows, cols);
  Mxfp4 result{rows, cols, std::vector<std::uint8_t>(n / 2), std::vector<std::uint8_t>(n / kBlock)};
  for (std::size_t block = 0; block < result.scales.size(); ++block) {
    const auto values = weights.subspan(block * kBlock, kBlock);
    result.scales[block] = mxfp4_scale(largest_magnitude(values));
    pack(values, from_e8m0(result.scales[block]), &result.codes[block * kBlock / 2]);
  }
  return result;
}

std::vector<float> dequantize(const Mxfp4& matrix) {
  std::vector<float> values(elements(matrix.rows, matrix.cols));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint8_t scale = matrix.scales[i / static_cast<std::size_t>(kMxfp4Block)];
    values[i] = from_e2m1(code_at(matrix.codes, i)) * from_e8m0(scale);
  }
  return values;
}

}  // namespace culprit::lab
