#include "lab/number/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lab/number/bf16.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

template <class Block>
std::size_t block_count(std::size_t values) {
  return values / static_cast<std::size_t>(Block::kValues);
}

template <class Block, class Value>
std::span<Value> values_of(std::span<Value> values, std::size_t block) {
  constexpr auto kValues = static_cast<std::size_t>(Block::kValues);
  return values.subspan(block * kValues, kValues);
}

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// value / step as a whole number within [low, high]; 0 where there is no step.
int whole(float value, float step, int low, int high) {
  const float ratio = step == 0 ? 0 : value / step;
  return static_cast<int>(
      std::clamp(std::nearbyint(ratio), static_cast<float>(low), static_cast<float>(high)));
}

// Q4_K packs 8 scales and 8 mins of 6 bits into 12 bytes: of the first four the low bits of bytes 0-3
// and 4-7; of the others four bits in bytes 8-11 and two in the high bits of bytes 0-7.
struct ScaleMin {
  int scale = 0, min = 0;  // 0 to 63
};

ScaleMin unpack_scale(const std::uint8_t* packed, std::size_t i) {
  if (i < 4) return {packed[i] & 63, packed[i + 4] & 63};
  return {(packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4, (packed[i + 4] >> 4) | (packed[i] >> 6)
                                                                                       << 4};
}

void pack_scale(std::uint8_t* packed, std::size_t i, ScaleMin value) {
  if (i < 4) {
    packed[i] = static_cast<std::uint8_t>(packed[i] | value.scale);
    packed[i + 4] = static_cast<std::uint8_t>(packed[i + 4] | value.min);
    return;
  }
  packed[i + 4] = static_cast<std::uint8_t>((value.scale & 15) | (value.min & 15) << 4);
  packed[i - 4] = static_cast<std::uint8_t>(packed[i - 4] | (value.scale >> 4) << 6);
  packed[i] = static_cast<std::uint8_t>(packed[i] | (value.min >> 4) << 6);
}

void quantize_one(std::span<const float> values, BlockQ8_0& block) {
  const float scale = largest_magnitude(values) / 127;
  block.d = to_half(scale);
  for (std::size_t i = 0; i < values.size(); ++i)
    block.qs[i] = static_cast<std::int8_t>(whole(values[i], scale, -127, 127));
}

constexpr std::size_t kQ4Sub = 32, kQ4Subs = 8, kQ6Sub = 16, kQ6Subs = 16;

// Each sub-block spans from its smallest value (0 at most) to its largest in 15 steps; steps and
// minima are then multiples of the block's d and dmin.
void quantize_one(std::span<const float> values, BlockQ4_K& block) {
  std::array<float, kQ4Subs> steps{}, below{};
  for (std::size_t sub = 0; sub < kQ4Subs; ++sub) {
    const auto part = values.subspan(sub * kQ4Sub, kQ4Sub);
    const auto [low, high] = std::minmax_element(part.begin(), part.end());
    below[sub] = std::max(0.0F, -*low);
    steps[sub] = (std::max(*high, 0.0F) + below[sub]) / 15;
  }
  block = {};
  block.d = to_half(*std::max_element(steps.begin(), steps.end()) / 63);
  block.dmin = to_half(*std::max_element(below.begin(), below.end()) / 63);
  const float d = from_half(block.d), dmin = from_half(block.dmin);
  for (std::size_t sub = 0; sub < kQ4Subs; ++sub) {
    const ScaleMin packed{whole(steps[sub], d, 0, 63), whole(below[sub], dmin, 0, 63)};
    pack_scale(block.scales, sub, packed);
    const float step = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    std::uint8_t* const codes =
        block.qs + sub / 2 * kQ4Sub;  // shared by two: low nibbles, then high
    for (std::size_t i = 0; i < kQ4Sub; ++i) {
      const int code = whole(values[sub * kQ4Sub + i] + min, step, 0, 15);
      codes[i] = static_cast<std::uint8_t>(codes[i] | code << (sub % 2 * 4));
    }
  }
}

// Where Q6_K keeps element i: 128 elements share 64 bytes of low nibbles and 32 bytes of high pairs.
struct Q6Place {
  std::size_t low, high;      // bytes in ql and qh
  int low_shift, high_shift;  // of the nibble and of the pair of bits
};

Q6Place q6_place(std::size_t i) {
  const std::size_t half = i / 128, quarter = i % 128 / 32, lane = i % 32;
  return {half * 64 + quarter % 2 * 32 + lane, half * 32 + lane, quarter < 2 ? 0 : 4,
          static_cast<int>(quarter) * 2};
}

void quantize_one(std::span<const float> values, BlockQ6_K& block) {
  std::array<float, kQ6Subs> steps{};
  for (std::size_t sub = 0; sub < kQ6Subs; ++sub) {
    const auto part = values.subspan(sub * kQ6Sub, kQ6Sub);
    const auto largest = std::max_element(
        part.begin(), part.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    steps[sub] = *largest / -32;  // signed, so that the largest takes the code that has no opposite
  }
  block = {};
  block.d = to_half(largest_magnitude(steps) / 127);
  const float d = from_half(block.d);
  for (std::size_t sub = 0; sub < kQ6Subs; ++sub)
    block.scales[sub] = static_cast<std::int8_t>(whole(steps[sub], d, -127, 127));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t sub = i / kQ6Sub;
    const float step = d * static_cast<float>(block.scales[sub]);
    const int code = whole(values[i], step, -32, 31) + 32;
    const Q6Place at = q6_place(i);
    block.ql[at.low] = static_cast<std::uint8_t>(block.ql[at.low] | (code & 15) << at.low_shift);
    block.qh[at.high] = static_cast<std::uint8_t>(block.qh[at.high] | (code >> 4) << at.high_shift);
  }
}

// Byte j of `codes` holds element j low and element j + half high.
void pack_halves(std::span<const float> values, float step, std::uint8_t* codes) {
  const std::size_t half = values.size() / 2;
  for (std::size_t j = 0; j < half; ++j) {
    const unsigned low = step == 0 ? 0U : to_e2m1(values[j] / step);
    const unsigned high = step == 0 ? 0U : to_e2m1(values[j + half] / step);
    codes[j] = static_cast<std::uint8_t>(high << 4 | low);
  }
}

void unpack_halves(const std::uint8_t* codes, float step, std::span<float> values) {
  const std::size_t half = values.size() / 2;
  for (std::size_t j = 0; j < half; ++j) {
    values[j] = from_e2m1(codes[j] & 15U) * step;
    values[j + half] = from_e2m1(codes[j] >> 4U) * step;
  }
}

void quantize_one(std::span<const float> values, BlockMxfp4& block) {
  block.e = mxfp4_scale(largest_magnitude(values));
  pack_halves(values, from_e8m0(block.e), block.qs);
}

constexpr std::size_t kNvfp4Sub = 16, kNvfp4Subs = 4;

// UE4M3: E4M3 without a sign, whose NaN is a zero.
float from_ue4m3(std::uint8_t code) {
  return (code & 0x7f) == 0x7f ? 0 : from_e4m3(static_cast<std::uint8_t>(code & 0x7f));
}

void quantize_one(std::span<const float> values, BlockNvfp4& block) {
  for (std::size_t sub = 0; sub < kNvfp4Subs; ++sub) {
    const auto part = values.subspan(sub * kNvfp4Sub, kNvfp4Sub);
    block.d[sub] = to_e4m3(largest_magnitude(part) / 6);
    pack_halves(part, from_ue4m3(block.d[sub]), block.qs + sub * kNvfp4Sub / 2);
  }
}

void dequantize_one(const BlockQ8_0& block, std::span<float> values) {
  const float d = from_half(block.d);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = d * static_cast<float>(block.qs[i]);
}

void dequantize_one(const BlockQ4_K& block, std::span<float> values) {
  const float d = from_half(block.d), dmin = from_half(block.dmin);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t sub = i / kQ4Sub;
    const ScaleMin packed = unpack_scale(block.scales, sub);
    const int code = block.qs[sub / 2 * kQ4Sub + i % kQ4Sub] >> (sub % 2 * 4) & 15;
    values[i] = d * static_cast<float>(packed.scale) * static_cast<float>(code) -
                dmin * static_cast<float>(packed.min);
  }
}

void dequantize_one(const BlockQ6_K& block, std::span<float> values) {
  const float d = from_half(block.d);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Q6Place at = q6_place(i);
    const int low = block.ql[at.low] >> at.low_shift & 15;
    const int high = block.qh[at.high] >> at.high_shift & 3;
    const std::size_t sub = i / kQ6Sub;
    values[i] =
        d * static_cast<float>(block.scales[sub]) * static_cast<float>((low | high << 4) - 32);
  }
}

void dequantize_one(const BlockMxfp4& block, std::span<float> values) {
  unpack_halves(block.qs, from_e8m0(block.e), values);
}

void dequantize_one(const BlockNvfp4& block, std::span<float> values) {
  for (std::size_t sub = 0; sub < kNvfp4Subs; ++sub)
    unpack_halves(block.qs + sub * kNvfp4Sub / 2, from_ue4m3(block.d[sub]),
                  values.subspan(sub * kNvfp4Sub, kNvfp4Sub));
}

template <class Block>
void quantize_all(std::span<const float> values, Block* blocks) {
  for (std::size_t b = 0; b < block_count<Block>(values.size()); ++b)
    quantize_one(values_of<Block>(values, b), blocks[b]);
}

template <class Block>
void dequantize_all(const Block* blocks, std::span<float> values) {
  for (std::size_t b = 0; b < block_count<Block>(values.size()); ++b)
    dequantize_one(blocks[b], values_of<Block>(values, b));
}

}  // namespace

void quantize(std::span<const float> values, BlockQ8_0* blocks) { quantize_all(values, blocks); }
void quantize(std::span<const float> values, BlockQ4_K* blocks) { quantize_all(values, blocks); }
void quantize(std::span<const float> values, BlockQ6_K* blocks) { quantize_all(values, blocks); }
void quantize(std::span<const float> values, BlockMxfp4* blocks) { quantize_all(values, blocks); }
void quantize(std::span<const float> values, BlockNvfp4* blocks) { quantize_all(values, blocks); }
void dequantize(const BlockQ8_0* blocks, std::span<float> values) {
  dequantize_all(blocks, values);
}
void dequantize(const BlockQ4_K* blocks, std::span<float> values) {
  dequantize_all(blocks, values);
}
void dequantize(const BlockQ6_K* blocks, std::span<float> values) {
  dequantize_all(blocks, values);
}
void dequantize(const BlockMxfp4* blocks, std::span<float> values) {
  dequantize_all(blocks, values);
}
void dequantize(const BlockNvfp4* blocks, std::span<float> values) {
  dequantize_all(blocks, values);
}

}  // namespace culprit::lab
