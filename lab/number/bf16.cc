#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

constexpr std::uint32_t kFloatInfinity = 0x7f800000U;
constexpr std::uint32_t kHalfQuietNan = 0x7e00U, kHalfInfinity = 0x7c00U;
constexpr std::uint32_t kSmallestNormalHalf = 0x38800000U;  // 2^-14, as a float's bits
constexpr int kDroppedBits = 23 - 10;                       // of the fraction
constexpr std::uint32_t kBiasDifference = (127U - 15U) << 10;

}  // namespace

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 31U;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {  // zero and the subnormals: a multiple of 2^-24, exact in a float
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }
  if (exponent == 31) {
    const std::uint32_t quiet = fraction == 0 ? 0 : 0x400000U;
    return std::bit_cast<float>(sign | kFloatInfinity | quiet | fraction << kDroppedBits);
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << kDroppedBits);
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, size = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (size > kFloatInfinity) {
    half = kHalfQuietNan | (size >> kDroppedBits & 0x3ffU);
  } else if (size < kSmallestNormalHalf) {
    // A float of 0.5 to 1 counts in steps of 2^-24, as subnormal halves do: adding rounds as they do.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) -
           std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t rounded = size + 0xfffU + (size >> kDroppedBits & 1U);
    half = (rounded >> kDroppedBits) - kBiasDifference;
    if (half > kHalfInfinity) half = kHalfInfinity;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace culprit::lab
