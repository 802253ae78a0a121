// The vector primitives in NEON, for any AArch64: see portable.h for what each one means. FP8 goes
// through half precision, as in x86.h. No dot-product extension: 8-bit products are exact in 16 bits.
#pragma once

#include <arm_neon.h>

#include "lab/kernels/simd/common.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t W = 4;
using F = float32x4_t;

inline F zero() { return vdupq_n_f32(0); }
inline F set1(float x) { return vdupq_n_f32(x); }
template <class Vector, class T>
inline Vector load_vector(const T* p) {  // from any address
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline F load(const float* p) { return load_vector<F>(p); }
inline F bf16_to_float(uint16x4_t bits) { return vreinterpretq_f32_u32(vshll_n_u16(bits, 16)); }
inline F load(const Bf16* p) { return bf16_to_float(load_vector<uint16x4_t>(p)); }
inline F half_to_float(uint16x4_t bits) { return vcvt_f32_f16(vreinterpret_f16_u16(bits)); }
inline F load_half(const std::uint16_t* p) { return half_to_float(load_vector<uint16x4_t>(p)); }
// 16-bit lanes of E4M3 codes to floats, through the half that is 2^-8 of each.
inline F e4m3_to_float(uint16x4_t codes) {
  const int16x4_t moved = vshr_n_s16(vreinterpret_s16_u16(vshl_n_u16(codes, 8)), 1);
  const uint16x4_t half = vand_u16(vreinterpret_u16_s16(moved), vdup_n_u16(0xbfff));
  const uint16x4_t nan = vceq_u16(vand_u16(half, vdup_n_u16(0x3f80)), vdup_n_u16(0x3f80));
  return vmulq_n_f32(half_to_float(vorr_u16(half, nan)), 256);
}
inline F load(const std::uint8_t* e4m3) {
  std::uint32_t word;
  std::memcpy(&word, e4m3, sizeof word);
  return e4m3_to_float(vget_low_u16(vmovl_u8(vcreate_u8(word))));
}
inline F load_e2m1(const std::uint8_t* codes) {
  const float v[W] = {static_cast<float>(kDoubledE2m1[codes[0] & 15]),
                      static_cast<float>(kDoubledE2m1[codes[0] >> 4]),
                      static_cast<float>(kDoubledE2m1[codes[1] & 15]),
                      static_cast<float>(kDoubledE2m1[codes[1] >> 4])};
  return load(v);
}
inline void store(float* p, F a) { std::memcpy(p, &a, sizeof a); }
inline uint16x4_t bf16_bits(F a) {
  const uint32x4_t bits = vreinterpretq_u32_f32(a);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t sum = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(a, a), sum, quiet), 16);
}
inline void store_bits(Bf16* p, uint16x4_t bits) {
  std::memcpy(static_cast<void*>(p), &bits, sizeof bits);
}
inline void store(Bf16* p, F a) { store_bits(p, bf16_bits(a)); }
inline void store(std::int8_t* p, F a) {
  const int16x4_t words = vmovn_s32(vcvtnq_s32_f32(a));
  const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
  std::memcpy(p, &bytes, 4);
}

inline F add(F a, F b) { return vaddq_f32(a, b); }
inline F sub(F a, F b) { return vsubq_f32(a, b); }
inline F mul(F a, F b) { return vmulq_f32(a, b); }
inline F div(F a, F b) { return vdivq_f32(a, b); }
inline F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
inline F max(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }  // b where it is no number
inline F min(F a, F b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline F abs(F a) { return vabsq_f32(a); }
inline F power_of(F a) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(0x7f800000)));
}
inline F round_even(F a) { return vrndnq_f32(a); }
inline F with_sign_of(F size, F sign) { return vbslq_f32(vdupq_n_u32(0x80000000U), sign, size); }
inline F power_of_two(F n) {
  const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}
inline F masked(uint32x4_t mask, float then) {
  return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(set1(then))));
}
inline F above(F a, float b, float then) { return masked(vcgtq_f32(a, set1(b)), then); }
inline F at_least(F a, float b, float then) { return masked(vcgeq_f32(a, set1(b)), then); }

inline float sum(F a) { return vaddvq_f32(a); }
inline void sum4(F a, F b, F c, F d, float* out) {
  store(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}
inline float largest(F a) { return vmaxnmvq_f32(a); }
inline void unzip(F lo, F hi, F& even, F& odd) {
  even = vuzp1q_f32(lo, hi);
  odd = vuzp2q_f32(lo, hi);
}
inline void zip(F even, F odd, F& lo, F& hi) {
  lo = vzip1q_f32(even, odd);
  hi = vzip2q_f32(even, odd);
}

struct Pairs {
  F a, b;
};
constexpr float kPairsE4m3Unit = 1;
inline void pairs2(const Bf16* p, Pairs& a, Pairs& b) {
  a = {load(p), load(p + W)};
  b = {load(p + 2 * W), load(p + 3 * W)};
}
inline void pairs2(const std::uint8_t* e4m3, Pairs& a, Pairs& b) {
  const auto codes = load_vector<uint8x16_t>(e4m3);
  const uint16x8_t low = vmovl_u8(vget_low_u8(codes)), high = vmovl_u8(vget_high_u8(codes));
  a = {e4m3_to_float(vget_low_u16(low)), e4m3_to_float(vget_high_u16(low))};
  b = {e4m3_to_float(vget_low_u16(high)), e4m3_to_float(vget_high_u16(high))};
}
inline F dot(F acc, Pairs w, Pairs x) { return fma(w.b, x.b, fma(w.a, x.a, acc)); }

// ---- 8-bit products ---------------------------------------------------------------------------------
// Sums of four; |a x b| of neighbours together stay below 2^15.
inline int32x4_t sums_of_4(int8x16_t a, int8x16_t b) {
  const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
  const int16x8_t high = vmull_s8(vget_high_s8(a), vget_high_s8(b));
  return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
}
inline int8x16_t doubled_e2m1(uint8x16_t codes) {
  return vqtbl1q_s8(load_vector<int8x16_t>(kDoubledE2m1), codes);
}
inline uint8x16_t low_of(uint8x16_t a) { return vandq_u8(a, vdupq_n_u8(15)); }

using Lanes = int32x4_t;
struct Codes {
  int8x16_t even, odd;
};
inline Codes decode(const std::uint8_t* codes) {
  const auto bytes = load_vector<uint8x16_t>(codes);
  return {doubled_e2m1(low_of(bytes)), doubled_e2m1(vshrq_n_u8(bytes, 4))};
}
struct TokenLanes {
  int8x16_t even, odd;
  F scales;
};
inline TokenLanes token_lanes(const std::int8_t* even, const std::int8_t* odd, const std::int32_t*,
                              const float* scales) {
  return {load_vector<int8x16_t>(even), load_vector<int8x16_t>(odd), load(scales)};
}
inline Lanes dot(const Codes& w, const TokenLanes& x) {
  return vaddq_s32(sums_of_4(w.even, x.even), sums_of_4(w.odd, x.odd));
}
inline F to_float(Lanes a) { return vcvtq_f32_s32(a); }
inline void store(std::int32_t* p, Lanes a) { std::memcpy(p, &a, sizeof a); }
inline F load_twice(const Bf16* p) {
  const Bf16 four[W] = {p[0], p[0], p[1], p[1]};
  return load(four);
}

struct Bytes {
  uint8x16_t low, high;
};
struct Octet {
  F low, high;
};
struct Ints {
  int32x4_t low, high;
};
inline Bytes load_bytes(const std::uint8_t* p) {
  return {load_vector<uint8x16_t>(p), load_vector<uint8x16_t>(p + 16)};
}
inline Bytes low_nibbles(Bytes a) { return {low_of(a.low), low_of(a.high)}; }
inline Bytes high_nibbles(Bytes a) { return {vshrq_n_u8(a.low, 4), vshrq_n_u8(a.high, 4)}; }
template <int K>
inline uint8x16_t pair_of_bits(uint8x16_t a) {
  const int8x16_t by = vdupq_n_s8(4 - 2 * K);  // to the right where it is negative
  return vandq_u8(vshlq_u8(a, by), vdupq_n_u8(0x30));
}
template <int K>
inline Bytes pair_of_bits(Bytes a) {
  return {pair_of_bits<K>(a.low), pair_of_bits<K>(a.high)};
}
inline Bytes either(Bytes a, Bytes b) { return {vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)}; }
inline Bytes minus_32(Bytes a) {
  return {vsubq_u8(a.low, vdupq_n_u8(32)), vsubq_u8(a.high, vdupq_n_u8(32))};
}
inline Bytes halves_of_e2m1(const std::uint8_t* p) {
  const Codes codes = decode(p);
  return {vreinterpretq_u8_s8(codes.even), vreinterpretq_u8_s8(codes.odd)};
}
inline Bytes quarters_of_e2m1(const std::uint8_t* p) {
  const Bytes halves = halves_of_e2m1(p);
  return {vcombine_u8(vget_low_u8(halves.low), vget_low_u8(halves.high)),
          vcombine_u8(vget_high_u8(halves.low), vget_high_u8(halves.high))};
}
inline Ints dot_signed(Bytes w, const std::int8_t* x) {
  return {sums_of_4(vreinterpretq_s8_u8(w.low), load_vector<int8x16_t>(x)),
          sums_of_4(vreinterpretq_s8_u8(w.high), load_vector<int8x16_t>(x + 16))};
}
inline Ints dot_unsigned(Bytes w, const std::int8_t* x) { return dot_signed(w, x); }  // below 64
inline Octet no_octet() { return {zero(), zero()}; }
inline Octet add_scaled(Octet acc, Ints a, float first, float second) {
  return {vfmaq_n_f32(acc.low, vcvtq_f32_s32(a.low), first),
          vfmaq_n_f32(acc.high, vcvtq_f32_s32(a.high), second)};
}
inline Octet add_scaled(Octet acc, Ints a, float scale) { return add_scaled(acc, a, scale, scale); }
template <class Whole>
inline Octet octet(const Whole* p, float scale) {
  float v[8];
  for (int i = 0; i < 8; ++i) v[i] = scale * static_cast<float>(p[i]);
  return {load(v), load(v + 4)};
}
inline Octet add_products(Octet acc, Octet a, Octet b) {
  return {fma(a.low, b.low, acc.low), fma(a.high, b.high, acc.high)};
}
inline Octet add_octets(Octet a, Octet b) { return {add(a.low, b.low), add(a.high, b.high)}; }
inline void store_octet(float* p, Octet a) {
  store(p, a.low);
  store(p + 4, a.high);
}
inline Octet scaled_octet(Octet acc, Octet a, float scale) {  // acc + a x scale
  return {vfmaq_n_f32(acc.low, a.low, scale), vfmaq_n_f32(acc.high, a.high, scale)};
}
inline float sum_octet(Octet a) { return sum(add(a.low, a.high)); }
inline float half_value(std::uint16_t bits) {
  return vgetq_lane_f32(half_to_float(vdup_n_u16(bits)), 0);
}

// ---- memory: no intrinsic stores past the caches; the hardware sees streams by itself ----------------
inline void to_bf16_64(const std::uint8_t* e4m3, Bf16* out) {
  for (std::int64_t i = 0; i < 64; i += W)
    store_bits(out + i, vshrn_n_u32(vreinterpretq_u32_f32(load(e4m3 + i)), 16));
}
inline void stream_as_bf16(const std::uint8_t* e4m3, Bf16* out) { to_bf16_64(e4m3, out); }
struct Line {
  uint8x16_t v[4];
};
inline Line load_line(const std::byte* p) { return load_vector<Line>(p); }
inline void stream(std::byte* p, const Line& a) { std::memcpy(p, &a, sizeof a); }
inline void stream_end() {}
inline Line mix(Line a, const Line& b) {
  for (int i = 0; i < 4; ++i) a.v[i] = veorq_u8(a.v[i], b.v[i]);
  return a;
}

}  // namespace
}  // namespace culprit::lab
