// BF16 and IEEE half as 16-bit patterns. Rounding is to nearest, ties to even; a NaN stays one and
// becomes quiet. Source: ggml-impl.h for BF16, IEEE 754 for half.
#pragma once

#include <bit>
#include <cstdint>

namespace culprit::lab {

struct Bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(Bf16, Bf16) = default;
};

inline float from_bf16(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

float from_half(std::uint16_t bits);
std::uint16_t to_half(float value);

}  // namespace culprit::lab
