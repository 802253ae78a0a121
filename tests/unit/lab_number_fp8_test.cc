// Every code of the 8-bit formats, every tie and both borders, against values built with ldexp and a
// search for the nearest.
#include "lab/number/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// sign, exponent and fraction as the formats define them; `fraction_bits` 3 or 2.
double defined(int code, int fraction_bits, int bias) {
  const int exponent = (code & 0x7f) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  const double size = std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
  return code < 0x80 ? size : -size;
}

struct Fp8 {
  const char* name;
  int fraction_bits, bias, largest, beyond;
  float (*decode)(std::uint8_t);
  std::uint8_t (*encode)(float, Overflow);
  double value(int code) const { return defined(code, fraction_bits, bias); }
};
const Fp8 kE4m3{"E4M3", 3, 7, 0x7e, 0x7f, from_e4m3, to_e4m3};
const Fp8 kE5m2{"E5M2", 2, 15, 0x7b, 0x7c, from_e5m2, to_e5m2};

// The nearest code by looking at all of them, the one after the largest included; ties to even.
int nearest(const Fp8& format, float x, Overflow overflow) {
  if (std::isnan(x)) return 0x7f | (std::signbit(x) ? 0x80 : 0);
  const double size = std::min(std::fabs(static_cast<double>(x)), 1e6);
  int best = 0;
  for (int code = 1; code <= format.largest + 1; ++code) {
    const double now = std::fabs(format.value(code) - size);
    const double before = std::fabs(format.value(best) - size);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  if (best > format.largest)
    best = overflow == Overflow::kSaturate ? format.largest : format.beyond;
  return best | (std::signbit(x) ? 0x80 : 0);
}

void expect_nearest(const Fp8& format, float x) {
  for (const Overflow overflow : {Overflow::kSpecial, Overflow::kSaturate})
    for (const float value : {x, -x})
      EXPECT_EQ(format.encode(value, overflow), nearest(format, value, overflow))
          << format.name << " of " << value;
}

TEST(Fp8, DecodesEveryCode) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const int size = code & 0x7f;
    const float e4m3 = from_e4m3(byte), e5m2 = from_e5m2(byte);
    EXPECT_TRUE(size == 0x7f ? std::isnan(e4m3) : e4m3 == static_cast<float>(kE4m3.value(code)))
        << code;
    EXPECT_TRUE(size > 0x7c ? std::isnan(e5m2)
                            : size == 0x7c || e5m2 == static_cast<float>(kE5m2.value(code)))
        << code;
    EXPECT_TRUE(size == 0x7f || e4m3_values()[byte] == e4m3) << code;
  }
  EXPECT_EQ(from_e5m2(0x7c), kInf);
  EXPECT_EQ(from_e5m2(0xfc), -kInf);
  EXPECT_TRUE(std::signbit(from_e4m3(0x80)));
  EXPECT_TRUE(std::signbit(from_e5m2(0x80)));
}

TEST(Fp8, E5m2IsTheTopByteOfAHalf) {
  for (int code = 0; code < 256; ++code) {
    const float value = from_e5m2(static_cast<std::uint8_t>(code));
    const float half = from_half(static_cast<std::uint16_t>(code << 8));
    EXPECT_TRUE(value == half || (std::isnan(value) && std::isnan(half))) << code;
  }
}

TEST(Fp8, EncodesEveryValueTieAndNeighbour) {
  for (const Fp8& format : {kE4m3, kE5m2}) {
    for (int code = 0; code <= format.largest; ++code) {
      const double low = format.value(code), high = format.value(code + 1);
      const auto tie = static_cast<float>((low + high) / 2);
      for (const float x : {static_cast<float>(low), tie}) {
        expect_nearest(format, x);
        expect_nearest(format, std::nextafter(x, 0.0F));
        expect_nearest(format, std::nextafter(x, kInf));
      }
    }
  }
}

TEST(Fp8, EncodesRandomFloats) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const float within = std::ldexp(static_cast<float>(random() % 4096) / 4096,
                                    static_cast<int>(random() % 40) - 22);
    for (const Fp8& format : {kE4m3, kE5m2}) {
      expect_nearest(format, x);
      expect_nearest(format, within);
    }
  }
}

TEST(Fp8, Borders) {
  EXPECT_EQ(to_e4m3(464, Overflow::kSpecial), 0x7e);  // a tie, to the even 448
  EXPECT_EQ(to_e4m3(std::nextafter(464.0F, kInf), Overflow::kSpecial), 0x7f);
  EXPECT_EQ(to_e4m3(std::nextafter(464.0F, kInf)), 0x7e);
  EXPECT_EQ(to_e4m3(-kInf, Overflow::kSpecial), 0xff);
  EXPECT_EQ(to_e4m3(-kInf), 0xfe);
  EXPECT_EQ(to_e4m3(0x1p-10F), 0);  // a tie to 0
  EXPECT_EQ(to_e5m2(std::nextafter(61440.0F, 0.0F), Overflow::kSpecial), 0x7b);
  EXPECT_EQ(to_e5m2(61440, Overflow::kSpecial), 0x7c);  // a tie, to the even infinity
  EXPECT_EQ(to_e5m2(61440), 0x7b);
  EXPECT_EQ(to_e5m2(kInf), 0x7b);
  EXPECT_EQ(to_e5m2(0x1p-17F), 0);
  for (const Overflow overflow : {Overflow::kSpecial, Overflow::kSaturate}) {
    EXPECT_EQ(to_e4m3(std::numeric_limits<float>::quiet_NaN(), overflow), 0x7f);
    EXPECT_EQ(to_e5m2(std::numeric_limits<float>::quiet_NaN(), overflow), 0x7f);
  }
}

TEST(Fp8, ScalesOfEightBits) {
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(from_e8m0(static_cast<std::uint8_t>(code)), std::ldexp(1.0F, code - 127)) << code;
  EXPECT_TRUE(std::isnan(from_e8m0(255)));
}

double half_value(int code) {
  const int exponent = (code & 0x7fff) >> 10, fraction = code & 0x3ff;
  const int significand = exponent == 0 ? fraction : fraction + 1024;
  return std::ldexp(significand, std::max(exponent, 1) - 15 - 10);
}

TEST(Half, EveryCodeAndTie) {
  for (int code = 0; code < 0x7c00; ++code) {  // the next above the largest counts as infinity
    const double low = half_value(code), high = half_value(code + 1);
    const auto bits = static_cast<std::uint16_t>(code);
    ASSERT_EQ(from_half(bits), low);
    ASSERT_EQ(from_half(bits | 0x8000), -low);
    ASSERT_EQ(to_half(static_cast<float>(low)), code);
    ASSERT_EQ(to_half(static_cast<float>(-low)), code | 0x8000);
    const auto tie = static_cast<float>((low + high) / 2);
    ASSERT_EQ(to_half(tie), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(to_half(std::nextafter(tie, 0.0F)), code);
    ASSERT_EQ(to_half(std::nextafter(tie, kInf)), code + 1);
  }
  EXPECT_EQ(to_half(65519.996F), 0x7bff);
  EXPECT_EQ(to_half(65520), 0x7c00);
  EXPECT_EQ(to_half(1e30F), 0x7c00);
  EXPECT_EQ(to_half(-kInf), 0xfc00);
  EXPECT_EQ(to_half(1e-30F), 0);
  EXPECT_EQ(from_half(0xfc00), -kInf);
}

TEST(Half, NanStaysOneAndBecomesQuiet) {
  for (int code = 0x7c01; code < 0x8000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    ASSERT_EQ(to_half(from_half(bits)), code | 0x200);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(from_half(bits)) & 0x400000U, 0x400000U);
  }
  EXPECT_EQ(to_half(std::bit_cast<float>(0x7f800001U)) & 0x7e00,
            0x7e00);  // no fraction bit is kept
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float low = from_bf16({static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(std::bit_cast<std::uint32_t>(low), bits << 16);
    ASSERT_EQ(to_bf16(low).bits, bits);
    const auto tie = std::bit_cast<float>(bits << 16 | 0x8000U);
    ASSERT_EQ(to_bf16(tie).bits, bits + (bits & 1U));
    ASSERT_EQ(to_bf16(-std::nextafter(tie, 0.0F)).bits, bits | 0x8000U);
    ASSERT_EQ(to_bf16(std::nextafter(tie, kInf)).bits, bits + 1);
  }
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f800001U)).bits, 0x7fc0);
  EXPECT_EQ(to_bf16(kInf).bits, 0x7f80);
}

}  // namespace
}  // namespace culprit::lab
