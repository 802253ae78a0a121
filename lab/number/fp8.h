// FP8 as bytes: E4M3fn (bias 7, no infinity, NaN only 0x7f/0xff, largest 448) and E5M2 (bias 15, as
// the top byte of an IEEE half). Decoding is exact; encoding rounds to nearest, ties to even, and
// says what becomes of values beyond the largest: c10 gives NaN (E4M3) or infinity (E5M2), CUDA's
// SATFINITE the largest. Source: pytorch c10/util/Float8_e4m3fn.h, Float8_e5m2.h.
#pragma once

#include <array>
#include <cstdint>

namespace culprit::lab {

enum class Overflow : std::uint8_t { kSpecial, kSaturate };

float from_e4m3(std::uint8_t code);
std::uint8_t to_e4m3(float value, Overflow overflow = Overflow::kSaturate);
float from_e5m2(std::uint8_t code);
std::uint8_t to_e5m2(float value, Overflow overflow = Overflow::kSaturate);

// All codes at once, for table lookups.
const std::array<float, 256>& e4m3_values();

// UE8M0, the scale of MXFP4: 2^(code - 127); 0xff is NaN.
float from_e8m0(std::uint8_t code);

}  // namespace culprit::lab
