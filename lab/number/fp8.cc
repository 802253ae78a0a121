#include "lab/number/fp8.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace culprit::lab {
namespace {

// What tells the two encodings apart. A subnormal is a multiple of 2^-(step_exponent).
struct Encoding {
  int fraction_bits;
  std::uint32_t bias;
  float smallest_normal;
  float same_step;  // floats from here to its double count in steps of the smallest subnormal
  std::uint32_t largest, beyond, nan;  // codes
};
constexpr Encoding kE4m3{3, 7, 0x1p-6F, 0x1p14F, 0x7e, 0x7f, 0x7f};
constexpr Encoding kE5m2{2, 15, 0x1p-14F, 0x1p7F, 0x7b, 0x7c, 0x7f};

std::uint8_t encode(float value, const Encoding& to, Overflow overflow) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 24 & 0x80U, size = bits & 0x7fffffffU;
  const float magnitude = std::bit_cast<float>(size);
  std::uint32_t code = 0;
  if (size > 0x7f800000U) {
    code = to.nan;
  } else if (magnitude < to.smallest_normal) {  // the addition rounds as the subnormals need it
    code = std::bit_cast<std::uint32_t>(magnitude + to.same_step) -
           std::bit_cast<std::uint32_t>(to.same_step);
  } else {
    const int dropped = 23 - to.fraction_bits;
    const std::uint32_t half = (1U << (dropped - 1)) - 1;
    code = (size + half + (size >> dropped & 1U)) >> dropped;
    code -= (127 - to.bias) << to.fraction_bits;
    if (code > to.largest) code = overflow == Overflow::kSaturate ? to.largest : to.beyond;
  }
  return static_cast<std::uint8_t>(sign | code);
}

constexpr float decode_e4m3(std::uint32_t code) {
  const float sign = code < 0x80 ? 1.0F : -1.0F;
  const std::uint32_t exponent = code >> 3 & 15U, fraction = code & 7U;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-9F;
  return sign * std::bit_cast<float>((exponent + 127 - 7) << 23 | fraction << 20);
}

constexpr float decode_e5m2(std::uint32_t code) {
  const float sign = code < 0x80 ? 1.0F : -1.0F;
  const std::uint32_t exponent = code >> 2 & 31U, fraction = code & 3U;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-16F;
  return sign * std::bit_cast<float>((exponent + 127 - 15) << 23 | fraction << 21);
}

template <class Decode>
constexpr std::array<float, 256> table_of(const Decode& decode) {
  std::array<float, 256> table{};
  for (std::uint32_t code = 0; code < 256; ++code) table[code] = decode(code);
  return table;
}
constexpr std::array<float, 256> kE4m3Values = table_of(decode_e4m3);
constexpr std::array<float, 256> kE5m2Values = table_of(decode_e5m2);

}  // namespace

float from_e4m3(std::uint8_t code) { return kE4m3Values[code]; }
std::uint8_t to_e4m3(float value, Overflow overflow) { return encode(value, kE4m3, overflow); }
float from_e5m2(std::uint8_t code) { return kE5m2Values[code]; }
std::uint8_t to_e5m2(float value, Overflow overflow) { return encode(value, kE5m2, overflow); }
const std::array<float, 256>& e4m3_values() { return kE4m3Values; }

float from_e8m0(std::uint8_t code) {
  if (code == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000U : std::uint32_t{code} << 23);
}

}  // namespace culprit::lab
