// The vector primitives in AVX2 with FMA and F16C: see portable.h for what each one means. Pairs
// hold the even and the odd of 16 numbers: BF16 becomes float by a shift or a mask, no shuffle.
#pragma once

#include "lab/kernels/simd/x86.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t W = 8;
using F = __m256;

inline F zero() { return _mm256_setzero_ps(); }
inline F set1(float x) { return _mm256_set1_ps(x); }
inline F load(const float* p) { return _mm256_loadu_ps(p); }
inline F load(const Bf16* p) { return bf16_to_float8(load16(p)); }
inline F load_half(const std::uint16_t* p) { return _mm256_cvtph_ps(load16(p)); }
inline F load(const std::uint8_t* e4m3) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(e4m3));
  const __m128i halves = halves_of_e4m3(_mm_cvtepu8_epi16(codes));
  return _mm256_mul_ps(_mm256_cvtph_ps(halves), set1(kHalfUnit));
}
inline F load_e2m1(const std::uint8_t* codes) {
  std::int32_t word;
  std::memcpy(&word, codes, sizeof word);
  const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts);
  const __m256 table = _mm256_setr_ps(0, 1, 2, 3, 4, 6, 8, 12);
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(code, 28), _mm256_set1_epi32(INT32_MIN));
  return _mm256_or_ps(_mm256_permutevar8x32_ps(table, code), _mm256_castsi256_ps(sign));
}
inline void store(float* p, F a) { _mm256_storeu_ps(p, a); }
inline void store(Bf16* p, F a) {
  const __m256i bits = bf16_bits(a);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
inline void store(std::int8_t* p, F a) {
  const __m256i whole = _mm256_cvtps_epi32(a);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}

inline F add(F a, F b) { return _mm256_add_ps(a, b); }
inline F sub(F a, F b) { return _mm256_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm256_mul_ps(a, b); }
inline F div(F a, F b) { return _mm256_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
inline F max(F a, F b) { return _mm256_max_ps(a, b); }
inline F min(F a, F b) { return _mm256_min_ps(a, b); }
inline F abs(F a) { return _mm256_andnot_ps(set1(-0.0F), a); }
inline F power_of(F a) {
  return _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000)));
}
inline F round_even(F a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline F with_sign_of(F size, F sign) {
  return _mm256_or_ps(abs(size), _mm256_and_ps(set1(-0.0F), sign));
}
inline F power_of_two(F n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
inline F above(F a, float b, float then) {
  return _mm256_and_ps(_mm256_cmp_ps(a, set1(b), _CMP_GT_OQ), set1(then));
}
inline F at_least(F a, float b, float then) {
  return _mm256_and_ps(_mm256_cmp_ps(a, set1(b), _CMP_GE_OQ), set1(then));
}

inline float sum(F a) { return sum_ps(fold(a)); }
inline void sum4(F a, F b, F c, F d, float* out) { sum4_ps(a, b, c, d, out); }
inline float largest(F a) { return largest_ps(a); }
inline void unzip(F lo, F hi, F& even, F& odd) {
  const __m256 first = _mm256_permute2f128_ps(lo, hi, 0x20);   // the lower half of each
  const __m256 second = _mm256_permute2f128_ps(lo, hi, 0x31);  // the upper
  const __m256 evens = _mm256_shuffle_ps(first, second, 0x88);
  const __m256 odds = _mm256_shuffle_ps(first, second, 0xdd);
  even = evens;
  odd = odds;
}
inline void zip(F even, F odd, F& lo, F& hi) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  lo = _mm256_permute2f128_ps(low, high, 0x20);
  hi = _mm256_permute2f128_ps(low, high, 0x31);
}

struct Pairs {
  F even, odd;
};
constexpr float kPairsE4m3Unit = kHalfUnit;
inline Pairs pairs_of_bf16(__m256i bits) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)),
          _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(INT32_C(-65536))))};
}
inline void pairs2(const Bf16* p, Pairs& a, Pairs& b) {
  a = pairs_of_bf16(load32(p));
  b = pairs_of_bf16(load32(p + 16));
}
inline void pairs2(const std::uint8_t* e4m3, Pairs& a, Pairs& b) {
  const __m256i codes = load32(e4m3);
  const __m256i even = halves_of_e4m3(_mm256_and_si256(codes, _mm256_set1_epi16(0xff)));
  const __m256i odd = halves_of_e4m3(_mm256_srli_epi16(codes, 8));
  a = {_mm256_cvtph_ps(_mm256_castsi256_si128(even)), _mm256_cvtph_ps(_mm256_castsi256_si128(odd))};
  b = {_mm256_cvtph_ps(_mm256_extracti128_si256(even, 1)),
       _mm256_cvtph_ps(_mm256_extracti128_si256(odd, 1))};
}
inline F dot(F acc, Pairs w, Pairs x) { return fma(w.odd, x.odd, fma(w.even, x.even, acc)); }

// ---- NVFP4 ----------------------------------------------------------------------------------------
using Lanes = __m256i;
struct Codes {
  __m256i even, odd;  // biased, hence unsigned
};
inline Codes decode(const std::uint8_t* codes) {
  const __m256i bytes = load32(codes), bias = _mm256_set1_epi8(Nvfp4Layout::kBias);
  return {_mm256_add_epi8(doubled_e2m1(low_nibbles(bytes)), bias),
          _mm256_add_epi8(doubled_e2m1(high_nibbles(bytes)), bias)};
}
struct TokenLanes {
  __m256i even, odd, starts;
  F scales;
};
inline TokenLanes token_lanes(const std::int8_t* even, const std::int8_t* odd,
                              const std::int32_t* starts, const float* scales) {
  return {load32(even), load32(odd), load32(starts), load(scales)};
}
inline Lanes dot(const Codes& w, const TokenLanes& x) {
  const __m256i words =
      _mm256_add_epi16(_mm256_maddubs_epi16(w.even, x.even), _mm256_maddubs_epi16(w.odd, x.odd));
  return _mm256_add_epi32(x.starts, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
}
inline F to_float(Lanes a) { return _mm256_cvtepi32_ps(a); }
inline void store(std::int32_t* p, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
inline F load_twice(const Bf16* p) {
  const __m256i four =
      _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  constexpr char kNone = -128;  // a zero
  const __m256i places = _mm256_setr_epi8(
      kNone, kNone, 0, 1, kNone, kNone, 0, 1, kNone, kNone, 2, 3, kNone, kNone, 2, 3,  //
      kNone, kNone, 4, 5, kNone, kNone, 4, 5, kNone, kNone, 6, 7, kNone, kNone, 6, 7);
  return _mm256_castsi256_ps(_mm256_shuffle_epi8(four, places));
}

// ---- memory ---------------------------------------------------------------------------------------
// Eight halves of E4M3 as BF16 numbers, each in the low 16 bits of its lane.
inline __m256i bf16_of_halves(__m128i halves) {
  const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(halves), set1(kHalfUnit));
  return _mm256_srli_epi32(_mm256_castps_si256(value), 16);
}
inline __m256i bf16_of_e4m3(const std::uint8_t* p) {  // 16 codes, exactly
  const __m256i halves = halves_of_e4m3(_mm256_cvtepu8_epi16(load16(p)));
  const __m256i low = bf16_of_halves(_mm256_castsi256_si128(halves));
  const __m256i high = bf16_of_halves(_mm256_extracti128_si256(halves, 1));
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}
inline void to_bf16_64(const std::uint8_t* e4m3, Bf16* out) {
  for (int i = 0; i < 64; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), bf16_of_e4m3(e4m3 + i));
}
inline void stream_as_bf16(const std::uint8_t* e4m3, Bf16* out) {
  for (int i = 0; i < 64; i += 16)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), bf16_of_e4m3(e4m3 + i));
}
struct Line {
  __m256i low, high;
};
inline Line load_line(const std::byte* p) { return {load32(p), load32(p + 32)}; }
inline void stream(std::byte* p, Line a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), a.low);
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p + 32), a.high);
}
inline Line mix(Line a, Line b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}

}  // namespace
}  // namespace culprit::lab
