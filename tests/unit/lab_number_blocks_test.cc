// ggml's blocks against their documented layouts: blocks written by hand, element by element, and
// round trips within what the formats can hold.
#include "lab/number/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lab/number/bf16.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

template <class Block>
std::vector<float> values_of(const Block& block) {
  std::vector<float> values(static_cast<std::size_t>(Block::kValues));
  dequantize(&block, values);
  return values;
}

// A block of random bytes with sane scales.
template <class Block>
Block random_block(unsigned seed) {
  std::mt19937 random(seed);
  Block block;
  auto* bytes = reinterpret_cast<std::uint8_t*>(&block);
  for (std::size_t i = 0; i < sizeof block; ++i) bytes[i] = static_cast<std::uint8_t>(random());
  if constexpr (requires { block.d = std::uint16_t{}; }) block.d = to_half(0.0123F);
  if constexpr (requires { block.dmin; }) block.dmin = to_half(0.0456F);
  if constexpr (requires { block.e; }) block.e = 120;
  return block;
}

TEST(Blocks, Q8_0ByHand) {
  BlockQ8_0 block{to_half(0.5F), {}};
  for (int i = 0; i < 32; ++i) block.qs[i] = static_cast<std::int8_t>(i * 8 - 128);
  const auto values = values_of(block);
  EXPECT_EQ(values[0], -64);
  EXPECT_EQ(values[17], 4);
  EXPECT_EQ(values[31], 60);
}

TEST(Blocks, Q4_KByHand) {
  BlockQ4_K block{to_half(0.5F), to_half(0.25F), {}, {}};
  // Sub-block 0: scale 3, min 5. Sub-block 5: scale 0b10'0110 = 38, min 0b11'1001 = 57, of which the
  // low four bits are in byte 9, the high two in bytes 1 and 5.
  block.scales[0] = 3;
  block.scales[4] = 5;
  block.scales[9] = 0x9 << 4 | 0x6;
  block.scales[1] = 2 << 6 | 17;  // 17: the scale of sub-block 1
  block.scales[5] = 3 << 6 | 21;  // 21: its min
  block.qs[0] = 0xa7;             // element 0 (low, 7) and element 32 (high, 10)
  block.qs[64 + 3] = 0xc4;  // element 128 + 3 (4) and, high, element 160 + 3 (12): sub-block 5
  const auto values = values_of(block);
  EXPECT_EQ(values[0], 0.5F * 3 * 7 - 0.25F * 5);
  EXPECT_EQ(values[32], 0.5F * 17 * 10 - 0.25F * 21);
  EXPECT_EQ(values[163], 0.5F * 38 * 12 - 0.25F * 57);
  EXPECT_EQ(values[164], -0.25F * 57);
  EXPECT_EQ(values[131], 0);  // sub-block 4: scale and min 0
}

TEST(Blocks, Q6_KByHand) {
  BlockQ6_K block{};
  block.d = to_half(0.5F);
  for (int i = 0; i < 16; ++i) block.scales[i] = static_cast<std::int8_t>(i - 8);
  // Within 128 elements, byte l of ql: low nibble element l or l + 32, high nibble l + 64 or l + 96;
  // byte l of qh: pairs of bits for elements l, l + 32, l + 64, l + 96.
  block.ql[5] = 0xb3;
  block.ql[32 + 5] = 0x6e;
  block.qh[5] = 2 << 6 | 1 << 4 | 3 << 2 | 0;
  block.ql[64 + 20] = 0x0f;
  block.qh[32 + 20] = 3;
  const auto values = values_of(block);
  EXPECT_EQ(values[5], 0.5F * -8 * (0x03 - 32));
  EXPECT_EQ(values[5 + 32], 0.5F * -6 * (0x3e - 32));
  EXPECT_EQ(values[5 + 64], 0.5F * -4 * (0x1b - 32));
  EXPECT_EQ(values[5 + 96], 0.5F * -2 * (0x26 - 32));
  EXPECT_EQ(values[128 + 20], 0.5F * 1 * (0x3f - 32));
  EXPECT_EQ(values[128 + 21], 0.5F * 1 * -32);
}

TEST(Blocks, Mxfp4ByHand) {
  BlockMxfp4 block{127 + 3, {}};
  block.qs[0] = 0xf2;  // low: element 0, code 2 = 1; high: element 16, code 15 = -6
  block.qs[15] = 0x17;
  const auto values = values_of(block);
  EXPECT_EQ(values[0], 8);
  EXPECT_EQ(values[1], 0);  // not the high nibble of byte 0
  EXPECT_EQ(values[16], -48);
  EXPECT_EQ(values[15], 48);
  EXPECT_EQ(values[31], 4);
}

TEST(Blocks, Nvfp4ByHand) {
  BlockNvfp4 block{{0x38, 0x40, 0x7f, 0x00}, {}};  // 1, 2, and two codes that mean 0
  block.qs[0] = 0xf2;                              // elements 0 and 8
  block.qs[8 + 7] = 0x57;                          // elements 16 + 7 and 16 + 15
  block.qs[16] = block.qs[24] = 0x77;
  const auto values = values_of(block);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[8], -6);
  EXPECT_EQ(values[16 + 7], 12);
  EXPECT_EQ(values[16 + 15], 6);
  for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(values[i], 0);
}

TEST(Blocks, Nvfp4ScalesHaveNoSign) {
  BlockNvfp4 block{{0xb8, 0xff, 0, 0}, {}};
  block.qs[0] = block.qs[8] = 2;
  EXPECT_EQ(values_of(block)[0], 1);
  EXPECT_EQ(values_of(block)[16], 0);
}

// What ggml stores: doubled values and half the scale. The product is the same.
TEST(Blocks, HalvedScalesTimesDoubledCodes) {
  constexpr int kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (int e = 0; e < 255; ++e) {
    BlockMxfp4 block{static_cast<std::uint8_t>(e), {}};
    for (int j = 0; j < 16; ++j) block.qs[j] = static_cast<std::uint8_t>(j | (15 - j) << 4);
    const auto values = values_of(block);
    for (std::size_t j = 0; j < 16; ++j) {
      EXPECT_EQ(values[j], std::ldexp(static_cast<float>(kDoubled[j]), e - 128));
      EXPECT_EQ(values[j + 16], std::ldexp(static_cast<float>(kDoubled[15 - j]), e - 128));
    }
  }
}

// Every element's largest error in steps of its own sub-block, over several seeds.
template <class Block, class StepOf>
void expect_round_trip(double steps, double of_block, const StepOf& step_of) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal(0.001F, 0.02F);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> values(static_cast<std::size_t>(Block::kValues) * 3);
    for (float& v : values) v = normal(random);
    std::vector<Block> blocks(3);
    quantize(values, blocks.data());
    std::vector<float> back(values.size());
    dequantize(blocks.data(), back);
    float amax = 0;
    for (const float v : values) amax = std::fmax(amax, std::fabs(v));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto block = i / static_cast<std::size_t>(Block::kValues);
      const double step = step_of(blocks[block], i % static_cast<std::size_t>(Block::kValues));
      ASSERT_LE(std::fabs(static_cast<double>(back[i]) - static_cast<double>(values[i])),
                steps * step + of_block * static_cast<double>(amax))
          << i;
    }
  }
}

TEST(Blocks, RoundTrips) {
  const auto half = [](std::uint16_t bits) { return static_cast<double>(from_half(bits)); };
  // Half a step, and what d as a half is off by, 2^-11, over up to 127 steps.
  expect_round_trip<BlockQ8_0>(0.5, 1.0 / 2048,
                               [&](const BlockQ8_0& b, std::size_t) { return half(b.d); });
  // Half a step; a step and a min are themselves rounded, by at most 1/126 of the block's largest,
  // which a code of 15 multiplies.
  expect_round_trip<BlockQ4_K>(0.5, 2.0 / 63, [&](const BlockQ4_K& b, std::size_t i) {
    const std::size_t sub = i / 32;
    const int scale =
        sub < 4 ? b.scales[sub] & 63 : (b.scales[sub + 4] & 15) | b.scales[sub - 4] >> 6 << 4;
    return half(b.d) * scale;
  });
  // A whole step: what is as large as the largest, but of the other sign, has no code of its own.
  expect_round_trip<BlockQ6_K>(1, 1.0 / 127, [&](const BlockQ6_K& b, std::size_t i) {
    return half(b.d) * std::abs(b.scales[i / 16]);
  });
  // E2M1's gaps reach two steps; amax / scale may reach 8, 2 beyond the largest code.
  expect_round_trip<BlockMxfp4>(
      2, 0, [](const BlockMxfp4& b, std::size_t) { return static_cast<double>(from_e8m0(b.e)); });
  // The scale of a sub-block may round down by 1/16, or to a subnormal of 2^-9 steps.
  expect_round_trip<BlockNvfp4>(1.4, 0.2, [](const BlockNvfp4& b, std::size_t i) {
    return static_cast<double>(from_e4m3(b.d[i / 16]));
  });
}

TEST(Blocks, Nvfp4EncodesByTheFormulas) {
  std::mt19937 random(23);
  std::normal_distribution<float> normal(0, 30);
  std::vector<float> values(64);
  for (float& v : values) v = normal(random);
  std::fill_n(values.begin() + 16, 16, 0.0F);
  BlockNvfp4 block;
  quantize(values, &block);
  EXPECT_EQ(block.d[1], 0);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t sub = i / 16, lane = i % 16;
    float amax = 0;
    for (std::size_t j = 0; j < 16; ++j) amax = std::fmax(amax, std::fabs(values[sub * 16 + j]));
    ASSERT_EQ(block.d[sub], to_e4m3(amax / 6));
    const int code = block.qs[sub * 8 + lane % 8] >> (lane < 8 ? 0 : 4) & 15;
    ASSERT_EQ(code, sub == 1 ? 0 : to_e2m1(values[i] / from_e4m3(block.d[sub])));
  }
}

template <class Block>
void expect_zero_survives() {
  const std::vector<float> zeros(static_cast<std::size_t>(Block::kValues), 0.0F);
  Block block;
  std::memset(&block, 0xff, sizeof block);
  quantize(zeros, &block);
  EXPECT_EQ(values_of(block), zeros);
}

TEST(Blocks, Zeros) {
  expect_zero_survives<BlockQ8_0>();
  expect_zero_survives<BlockQ4_K>();
  expect_zero_survives<BlockQ6_K>();
  expect_zero_survives<BlockMxfp4>();
  expect_zero_survives<BlockNvfp4>();
}

// Positive values only, which Q4_K must not shift: its min is never below zero.
TEST(Blocks, Q4_KOfPositiveValues) {
  std::vector<float> values(256);
  for (std::size_t i = 0; i < 256; ++i) values[i] = 3 + static_cast<float>(i) / 256;
  BlockQ4_K block;
  quantize(values, &block);
  EXPECT_EQ(block.dmin, 0);
  const auto back = values_of(block);
  for (std::size_t i = 0; i < 256; ++i) EXPECT_NEAR(back[i], values[i], 0.5 * 4 / 15 + 0.05);
}

// Reading a block and writing its values again gives the same bytes where the format allows only one
// way: Q8_0 with its largest code present.
TEST(Blocks, Q8_0IsStable) {
  BlockQ8_0 block = random_block<BlockQ8_0>(5);
  for (auto& q : block.qs) q = std::max<std::int8_t>(q, -127);
  block.qs[9] = 127;
  BlockQ8_0 again;
  quantize(values_of(block), &again);
  EXPECT_EQ(std::memcmp(&block, &again, sizeof block), 0);
}

// All bytes random: element by element against the reference formulas of ggml-quants.c in words.
TEST(Blocks, Q6_KRandomBytes) {
  const auto block = random_block<BlockQ6_K>(31);
  const auto values = values_of(block);
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l)
      for (std::size_t quarter = 0; quarter < 4; ++quarter) {
        const int nibbles = block.ql[half * 64 + (quarter % 2) * 32 + l];
        const int low = quarter < 2 ? nibbles & 15 : nibbles >> 4;
        const int high = block.qh[half * 32 + l] >> (2 * quarter) & 3;
        const int scale = block.scales[half * 8 + quarter * 2 + l / 16];
        EXPECT_FLOAT_EQ(values[half * 128 + quarter * 32 + l],
                        from_half(block.d) * static_cast<float>(scale * (low + 16 * high - 32)));
      }
}

}  // namespace
}  // namespace culprit::lab
