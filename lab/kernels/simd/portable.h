// The vector primitives in plain C++: what every other file in this folder does with instructions.
// Read this one first. F holds W floats. An `Octet` holds 8 floats and belongs to the 32 bytes
// that the kernels of ggml's blocks work on.
#pragma once

#include "lab/kernels/simd/common.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t W = 8;

struct F {
  float v[W];
};

// f(i) for each lane.
template <class Lane>
inline F lanes(const Lane& lane) {
  F r;
  for (int i = 0; i < W; ++i) r.v[i] = lane(i);
  return r;
}

inline F zero() { return F{}; }
inline F set1(float x) {
  return lanes([&](int) { return x; });
}
template <class T>  // wherever it lies
inline T element(const T* p, int i) {
  T x;
  std::memcpy(&x, p + i, sizeof x);
  return x;
}
inline F load(const float* p) {
  F r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline F load(const Bf16* p) {
  return lanes([&](int i) { return from_bf16(element(p, i)); });
}
inline F load_half(const std::uint16_t* p) {
  return lanes([&](int i) { return from_half(element(p, i)); });
}
inline F load(const std::uint8_t* e4m3) {
  return lanes([&](int i) { return from_e4m3(e4m3[i]); });
}
// Doubled values of W codes, the even one in the low nibble.
inline F load_e2m1(const std::uint8_t* codes) {
  return lanes(
      [&](int i) { return static_cast<float>(kDoubledE2m1[codes[i / 2] >> (i % 2 * 4) & 15]); });
}
inline void store(float* p, F a) { std::memcpy(p, a.v, sizeof a.v); }
inline void store(Bf16* p, F a) {
  for (int i = 0; i < W; ++i) p[i] = to_bf16(a.v[i]);
}
// Whole numbers of at most 127 in magnitude, once rounded to nearest, ties to even.
inline void store(std::int8_t* p, F a) {
  for (int i = 0; i < W; ++i) p[i] = static_cast<std::int8_t>(std::lrint(a.v[i]));
}

inline F add(F a, F b) {
  return lanes([&](int i) { return a.v[i] + b.v[i]; });
}
inline F sub(F a, F b) {
  return lanes([&](int i) { return a.v[i] - b.v[i]; });
}
inline F mul(F a, F b) {
  return lanes([&](int i) { return a.v[i] * b.v[i]; });
}
inline F div(F a, F b) {
  return lanes([&](int i) { return a.v[i] / b.v[i]; });
}
// a x b + c, rounded once or twice.
inline F fma(F a, F b, F c) {
  return lanes([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
// Where b is no number, b.
inline F max(F a, F b) {
  return lanes([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F min(F a, F b) {
  return lanes([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F abs(F a) {
  return lanes([&](int i) { return std::fabs(a.v[i]); });
}
// 2^e of a number 1.xxx times 2^e; 0 of a subnormal.
inline F power_of(F a) {
  return lanes([&](int i) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.v[i]) & 0x7f800000U);
  });
}
inline F round_even(F a) {
  return lanes([&](int i) { return std::nearbyint(a.v[i]); });
}
inline F with_sign_of(F size, F sign) {
  return lanes([&](int i) { return std::copysign(size.v[i], sign.v[i]); });
}
// 2^n for whole n in [-126, 127].
inline F power_of_two(F n) {
  return lanes([&](int i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<int>(n.v[i]) + 127) << 23);
  });
}
// `then` where a > b (a >= b), else 0.
inline F above(F a, float b, float then) {
  return lanes([&](int i) { return a.v[i] > b ? then : 0; });
}
inline F at_least(F a, float b, float then) {
  return lanes([&](int i) { return a.v[i] >= b ? then : 0; });
}

inline float sum(F a) {
  return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
}
inline void sum4(F a, F b, F c, F d, float* out) {
  out[0] = sum(a);
  out[1] = sum(b);
  out[2] = sum(c);
  out[3] = sum(d);
}
inline float largest(F a) {
  float r = a.v[0];
  for (const float x : a.v) r = x > r ? x : r;
  return r;
}
// (a0, b0, a1, b1, ...) to (a0, a1, ...) and (b0, b1, ...), and back.
inline void unzip(F lo, F hi, F& even, F& odd) {
  const auto at = [&](int i) { return i < W ? lo.v[i] : hi.v[i - W]; };
  even = lanes([&](int i) { return at(2 * i); });
  odd = lanes([&](int i) { return at(2 * i + 1); });
}
inline void zip(F even, F odd, F& lo, F& hi) {
  const auto at = [&](int i) { return i % 2 == 0 ? even.v[i / 2] : odd.v[i / 2]; };
  lo = lanes([&](int i) { return at(i); });
  hi = lanes([&](int i) { return at(i + W); });
}

// 2 W numbers for a dot product with BF16; in which order is the target's business.
struct Pairs {
  F a, b;
};
constexpr float kPairsE4m3Unit = 1;  // a true value over what pairs(e4m3) gives
inline void pairs2(const Bf16* p, Pairs& a, Pairs& b) {
  a = {load(p), load(p + W)};
  b = {load(p + 2 * W), load(p + 3 * W)};
}
inline void pairs2(const std::uint8_t* p, Pairs& a, Pairs& b) {
  a = {load(p), load(p + W)};
  b = {load(p + 2 * W), load(p + 3 * W)};
}
inline F dot(F acc, Pairs w, Pairs x) { return fma(w.b, x.b, fma(w.a, x.a, acc)); }

// ---- NVFP4: 4 W bytes of weights against two planes of doubled codes, W lanes of 8 products each ---
struct Lanes {
  std::int32_t v[W];
};
struct Codes {
  std::int8_t even[4 * W], odd[4 * W];
};
inline Codes decode(const std::uint8_t* codes) {
  Codes r;
  for (int i = 0; i < 4 * W; ++i) {
    r.even[i] = kDoubledE2m1[codes[i] & 15];
    r.odd[i] = kDoubledE2m1[codes[i] >> 4];
  }
  return r;
}
// What a prepared token holds for W lanes.
struct TokenLanes {
  const std::int8_t *even, *odd;
  F scales;
};
inline TokenLanes token_lanes(const std::int8_t* even, const std::int8_t* odd, const std::int32_t*,
                              const float* scales) {
  return {even, odd, load(scales)};
}
inline Lanes dot(const Codes& w, const TokenLanes& x) {
  Lanes r{};
  for (int i = 0; i < 4 * W; ++i) r.v[i / 4] += w.even[i] * x.even[i] + w.odd[i] * x.odd[i];
  return r;
}
inline F to_float(Lanes a) {
  return lanes([&](int i) { return static_cast<float>(a.v[i]); });
}
inline void store(std::int32_t* p, Lanes a) { std::memcpy(p, a.v, sizeof a.v); }
// W / 2 numbers, each twice.
inline F load_twice(const Bf16* p) {
  return lanes([&](int i) { return from_bf16(p[i / 2]); });
}

// ---- 32 bytes -----------------------------------------------------------------------------------
struct Bytes {
  std::uint8_t v[32];
};
struct Octet {
  float v[8];
};
struct Ints {  // 8 sums of 4 products
  std::int32_t v[8];
};
template <class Lane>
inline Bytes bytes(const Lane& lane) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<std::uint8_t>(lane(i));
  return r;
}
inline Bytes load_bytes(const std::uint8_t* p) {
  Bytes r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline Bytes low_nibbles(Bytes a) {
  return bytes([&](int i) { return a.v[i] & 15; });
}
inline Bytes high_nibbles(Bytes a) {
  return bytes([&](int i) { return a.v[i] >> 4; });
}
// Bits [2k, 2k + 2) of each byte, moved to bits 4 and 5.
template <int K>
inline Bytes pair_of_bits(Bytes a) {
  return bytes([&](int i) { return (a.v[i] >> (2 * K) & 3) << 4; });
}
inline Bytes either(Bytes a, Bytes b) {
  return bytes([&](int i) { return a.v[i] | b.v[i]; });
}
inline Bytes minus_32(Bytes a) {
  return bytes([&](int i) { return a.v[i] - 32; });
}
// Doubled E2M1 of 16 bytes: low nibbles then high nibbles; or so within each 8 bytes.
inline Bytes halves_of_e2m1(const std::uint8_t* p) {
  return bytes([&](int i) { return kDoubledE2m1[i < 16 ? p[i] & 15 : p[i - 16] >> 4]; });
}
inline Bytes quarters_of_e2m1(const std::uint8_t* p) {
  return bytes([&](int i) {
    const int at = i / 16 * 8 + i % 8;
    return kDoubledE2m1[i % 16 < 8 ? p[at] & 15 : p[at] >> 4];
  });
}
inline Ints dot_unsigned(Bytes w, const std::int8_t* x) {  // w below 64
  Ints r{};
  for (int i = 0; i < 32; ++i) r.v[i / 4] += w.v[i] * x[i];
  return r;
}
inline Ints dot_signed(Bytes w, const std::int8_t* x) {
  Ints r{};
  for (int i = 0; i < 32; ++i) r.v[i / 4] += static_cast<std::int8_t>(w.v[i]) * x[i];
  return r;
}
inline Octet no_octet() { return Octet{}; }
inline Octet add_scaled(Octet acc, Ints a, float scale) {
  for (int i = 0; i < 8; ++i) acc.v[i] += scale * static_cast<float>(a.v[i]);
  return acc;
}
// The first 4 lanes by one scale, the others by another.
inline Octet add_scaled(Octet acc, Ints a, float first, float second) {
  for (int i = 0; i < 8; ++i) acc.v[i] += (i < 4 ? first : second) * static_cast<float>(a.v[i]);
  return acc;
}
// Eight whole numbers, times a scale.
template <class Whole>
inline Octet octet(const Whole* p, float scale) {
  Octet r;
  for (int i = 0; i < 8; ++i) r.v[i] = scale * static_cast<float>(p[i]);
  return r;
}
inline Octet add_products(Octet acc, Octet a, Octet b) {
  for (int i = 0; i < 8; ++i) acc.v[i] += a.v[i] * b.v[i];
  return acc;
}
inline Octet add_octets(Octet a, Octet b) {
  for (int i = 0; i < 8; ++i) a.v[i] += b.v[i];
  return a;
}
inline void store_octet(float* p, Octet a) { std::memcpy(p, a.v, sizeof a.v); }
inline Octet scaled_octet(Octet acc, Octet a, float scale) {  // acc + a x scale
  for (int i = 0; i < 8; ++i) acc.v[i] += scale * a.v[i];
  return acc;
}
inline float sum_octet(Octet a) {
  return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
}
inline float half_value(std::uint16_t bits) { return from_half(bits); }

// ---- memory -------------------------------------------------------------------------------------
// 64 codes to BF16, past the caches; `out` is a multiple of 64.
inline void stream_as_bf16(const std::uint8_t* e4m3, Bf16* out) {
  for (int i = 0; i < 64; ++i) out[i] = to_bf16(from_e4m3(e4m3[i]));
}
inline void to_bf16_64(const std::uint8_t* e4m3, Bf16* out) { stream_as_bf16(e4m3, out); }
struct Line {
  std::uint64_t v[8];
};
inline Line load_line(const std::byte* p) {
  Line r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void stream(std::byte* p, const Line& a) { std::memcpy(p, a.v, sizeof a.v); }
inline void stream_end() {}
inline Line mix(Line a, const Line& b) {
  for (int i = 0; i < 8; ++i) a.v[i] ^= b.v[i];
  return a;
}

}  // namespace
}  // namespace culprit::lab
