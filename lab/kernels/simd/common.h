// What the files of this folder share. A target's file (avx2.cc) includes, between pragmas that
// allow its instructions: its primitives (avx2.h), then the algorithms (rows.h, linear.h, nvfp4.h,
// blocks.h, attention.h, table.h), which are written once over those primitives. Everything is in
// an unnamed namespace, so that no linker takes one target's code for another's; for the same
// reason standard headers are included before the pragmas, and lambdas and standard containers stay out.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lab/kernels/kernels.h"
#include "lab/kernels/prepared.h"
#include "lab/kernels/tables.h"
#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

// Before a loop over accumulators: it must be unrolled, or they live in memory instead of registers.
#ifdef __clang__
#define CULPRIT_UNROLL _Pragma("unroll")
#else
#define CULPRIT_UNROLL _Pragma("GCC unroll 16")
#endif

// Where a call in an inner loop would cost more than the work.
#define CULPRIT_INLINE inline __attribute__((always_inline))

namespace culprit::lab {

alignas(16) inline constexpr std::int8_t kDoubledE2m1[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                             0, -1, -2, -3, -4, -6, -8, -12};

// UE8M0 to float, halved, for the doubled codes that it scales; 0xff is NaN.
inline float half_e8m0(std::uint8_t code) {
  const auto bits = code < 2 ? 0x00200000U << code : (code - 1U) << 23;
  return std::bit_cast<float>(code == 0xff ? 0x7fc00000U : bits);
}

// What int8 activations are multiplied by before they are rounded; a block this small is zero, for
// its inverse would be infinite.
inline float int8_steps(float largest) { return largest > 0x1p-100F ? 127 / largest : 0; }

template <class T>
inline T load_as(const std::byte* p) {  // from any address
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace culprit::lab
