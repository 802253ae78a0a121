// E2M1 and the block formats built on it, code for code against the formulas: each operation rounded
// to float by way of double, each code found by looking at all of them.
#include "lab/number/fp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr double kValues[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr float kInf = std::numeric_limits<float>::infinity();

// Nearest of the eight, ties to the even code.
int nearest_e2m1(float x) {
  if (std::isnan(x)) return 0;
  const double size = std::min(std::fabs(static_cast<double>(x)), 100.0);
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    const double now = std::fabs(kValues[code] - size), before = std::fabs(kValues[best] - size);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best + (x < 0 ? 8 : 0);
}

int nearest_e4m3(float x) {
  int best = 0;
  for (int code = 1; code <= 0x7e; ++code) {
    const double now = std::fabs(static_cast<double>(from_e4m3(static_cast<std::uint8_t>(code))) -
                                 static_cast<double>(x));
    const double before = std::fabs(
        static_cast<double>(from_e4m3(static_cast<std::uint8_t>(best))) - static_cast<double>(x));
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best;
}

// One operation on floats, rounded once: a double holds their product and quotient well enough.
float times(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}
float over(float a, float b) {
  return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
}

float amax_of(std::span<const float> values) {
  float amax = 0;
  for (const float v : values) amax = std::fmax(amax, std::fabs(v));
  return amax;
}

std::vector<float> random_weights(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

int nibble(const std::vector<std::uint8_t>& codes, std::size_t i) {
  return codes[i / 2] >> (i % 2 * 4) & 15;
}

TEST(E2m1, EveryCode) {
  for (int code = 0; code < 16; ++code) {
    const double value = code < 8 ? kValues[code] : -kValues[code - 8];
    EXPECT_EQ(from_e2m1(static_cast<std::uint8_t>(code)), value);
    EXPECT_EQ(doubled_e2m1(static_cast<std::uint8_t>(code)), 2 * value);
    EXPECT_EQ(to_e2m1(from_e2m1(static_cast<std::uint8_t>(code))), code == 8 ? 0 : code);
    EXPECT_EQ(from_e2m1(static_cast<std::uint8_t>(code | 0xf0)), value);  // only the low four bits
  }
}

TEST(E2m1, TiesGoToTheEvenCode) {
  const std::pair<float, float> ties[] = {{0.25F, 0}, {0.75F, 1}, {1.25F, 1}, {1.75F, 2},
                                          {2.5F, 2},  {3.5F, 4},  {5, 4}};
  for (const auto& [tie, value] : ties) {
    EXPECT_EQ(from_e2m1(to_e2m1(tie)), value) << tie;
    EXPECT_EQ(from_e2m1(to_e2m1(-tie)), -value) << tie;
    for (const float x : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, kInf)}) {
      EXPECT_EQ(to_e2m1(x), nearest_e2m1(x)) << x;
      EXPECT_EQ(to_e2m1(-x), nearest_e2m1(-x)) << -x;
    }
  }
  EXPECT_EQ(to_e2m1(1e30F), 7);
  EXPECT_EQ(to_e2m1(-kInf), 15);
  EXPECT_EQ(to_e2m1(std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(to_e2m1(-0.0F), 0);
  EXPECT_EQ(to_e2m1(-0.1F), 8);
}

TEST(E2m1, RandomFloats) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const float x = std::ldexp(static_cast<float>(random() % 8192) - 4096, -9);
    ASSERT_EQ(to_e2m1(x), nearest_e2m1(x)) << x;
  }
}

void expect_nvfp4_by_formula(std::span<const float> weights, const Nvfp4& got) {
  EXPECT_EQ(got.scale_2, over(amax_of(weights), 2688));
  for (std::size_t block = 0; block < weights.size() / 16; ++block) {
    const auto values = weights.subspan(block * 16, 16);
    const float amax = amax_of(values);
    const float exact = amax == 0 ? 1 : over(amax, times(6, got.scale_2));
    ASSERT_EQ(got.scales[block], nearest_e4m3(std::fmin(std::fmax(exact, 0x1p-9F), 448.0F)));
    const float step = times(from_e4m3(got.scales[block]), got.scale_2);
    for (std::size_t i = 0; i < 16; ++i)
      ASSERT_EQ(nibble(got.codes, block * 16 + i),
                amax == 0 ? 0 : nearest_e2m1(over(values[i], step)))
          << "block " << block << " element " << i;
  }
}

TEST(Nvfp4, WeightsByTheFormula) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::vector<float> weights = random_weights(48 * 96, seed);
    std::fill_n(weights.begin() + 32, 16, 0.0F);                // a zero block
    for (std::size_t i = 64; i < 80; ++i) weights[i] *= 1e-6F;  // one far below the tensor
    for (std::size_t i = 96; i < 112; ++i) weights[i] *= 20;    // and one above
    const Nvfp4 quantized = quantize_nvfp4(weights, 48, 96);
    expect_nvfp4_by_formula(weights, quantized);
    EXPECT_EQ(quantized.scales[2], to_e4m3(1)) << "the scale of a zero block";
    EXPECT_EQ(quantized.scales[4], 1) << "clamped to 2^-9";
    EXPECT_EQ(*std::max_element(quantized.scales.begin(), quantized.scales.end()), 0x7e);
  }
}

TEST(Nvfp4, EvenElementsAreLow) {
  std::vector<float> weights(16, 0.0F);
  weights[0] = 6, weights[1] = 1, weights[3] = -2;
  const Nvfp4 quantized = quantize_nvfp4(weights, 1, 16);
  EXPECT_EQ(quantized.codes[0], 2 << 4 | 7);
  EXPECT_EQ(quantized.codes[1], 12 << 4 | 0);
}

TEST(Nvfp4, ComesBackWithinHalfAStep) {
  const std::vector<float> weights = random_weights(32 * 64, 9);
  const Nvfp4 quantized = quantize_nvfp4(weights, 32, 64);
  const std::vector<float> back = dequantize(quantized);
  ASSERT_EQ(back.size(), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float step = from_e4m3(quantized.scales[i / 16]) * quantized.scale_2;
    const double value =
        kValues[nibble(quantized.codes, i) & 7] * (nibble(quantized.codes, i) < 8 ? 1 : -1);
    EXPECT_FLOAT_EQ(back[i], static_cast<float>(value) * step);
    EXPECT_LE(std::fabs(back[i] - weights[i]),
              step * 1.25F);  // gaps reach 2 steps; a scale rounds down by 1/16
  }
}

TEST(Nvfp4, AllZero) {
  const Nvfp4 quantized = quantize_nvfp4(std::vector<float>(64, 0.0F), 2, 32);
  EXPECT_EQ(quantized.scale_2, 0);
  EXPECT_EQ(quantized.scales, std::vector<std::uint8_t>(4, to_e4m3(1)));
  EXPECT_EQ(dequantize(quantized), std::vector<float>(64, 0.0F));
}

TEST(Nvfp4, ActivationsByTheFormula) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const float calibrated : {6.0F, 20.0F, 0.4F}) {  // amax: about right, loose, clipping
    std::vector<float> row(16 * 40);
    for (float& v : row) v = normal(random);
    std::fill_n(row.begin() + 16, 16, 0.0F);
    for (std::size_t i = 32; i < 48; ++i) row[i] *= 1e-5F;  // its scale rounds to 0
    const float scale = calibrated / 2688;
    std::vector<std::uint8_t> codes(row.size() / 2, 0xaa), scales(row.size() / 16, 0xaa);
    quantize_activations(row, scale, codes.data(), scales.data());
    const float global = over(1, scale);
    for (std::size_t block = 0; block < scales.size(); ++block) {
      const auto values = std::span(row).subspan(block * 16, 16);
      const float exact = over(times(global, amax_of(values)), 6);
      ASSERT_EQ(scales[block], nearest_e4m3(exact)) << block;  // the search stops at 448
      const float step = over(from_e4m3(scales[block]), global);
      for (std::size_t i = 0; i < 16; ++i)
        ASSERT_EQ(nibble(codes, block * 16 + i),
                  scales[block] == 0 ? 0 : nearest_e2m1(over(values[i], step)));
    }
    EXPECT_EQ(scales[1], 0);
  }
}

TEST(Mxfp4, ByTheFormula) {
  std::vector<float> weights = random_weights(8 * 64, 5);
  std::fill_n(weights.begin() + 32, 32, 0.0F);
  for (std::size_t i = 64; i < 96; ++i) weights[i] *= 1e-37F;  // below the smallest scale
  for (std::size_t i = 96; i < 128; ++i) weights[i] *= 1e38F;
  const Mxfp4 quantized = quantize_mxfp4(weights, 8, 64);
  const std::vector<float> back = dequantize(quantized);
  for (std::size_t block = 0; block < quantized.scales.size(); ++block) {
    const auto values = std::span(weights).subspan(block * 32, 32);
    const double amax = static_cast<double>(amax_of(values));
    int exponent = -127;
    while (amax >= std::ldexp(1.0, exponent + 1 + 2)) ++exponent;  // floor(log2 amax) - 2, or -127
    ASSERT_EQ(quantized.scales[block], exponent + 127);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t at = block * 32 + i;
      ASSERT_EQ(nibble(quantized.codes, at), nearest_e2m1(std::ldexp(values[i], -exponent)));
      ASSERT_EQ(
          back[at],
          std::ldexp(from_e2m1(static_cast<std::uint8_t>(nibble(quantized.codes, at))), exponent));
    }
  }
  EXPECT_EQ(quantized.scales[1], 0);
  EXPECT_EQ(quantized.scales[2], 0);
  EXPECT_EQ(mxfp4_scale(std::numeric_limits<float>::max()), 127 + 125);
  EXPECT_EQ(mxfp4_scale(4), 127);
  EXPECT_EQ(mxfp4_scale(std::nextafter(8.0F, 0.0F)), 127);
  EXPECT_EQ(mxfp4_scale(8), 128);
}

}  // namespace
}  // namespace culprit::lab
