// The vector primitives in AVX-512 (F, BW, VL, DQ, VNNI, BF16, VBMI): see portable.h for what each
// one means. VDPBF16PS takes subnormal inputs for zero, so FP8 is decoded to normal BF16 numbers,
// by a table, never by shifting its bits into a scaled one.
#pragma once

#define CULPRIT_LAB_VNNI
#include "lab/kernels/simd/x86.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t W = 16;
using F = __m512;

inline __m512i load64(const void* p) { return _mm512_loadu_si512(p); }

inline F zero() { return _mm512_setzero_ps(); }
inline F set1(float x) { return _mm512_set1_ps(x); }
inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline F load(const Bf16* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(p)), 16));
}
inline F load_half(const std::uint16_t* p) { return _mm512_cvtph_ps(load32(p)); }
inline F load(const std::uint8_t* e4m3) {
  const __m256i halves = halves_of_e4m3(_mm256_cvtepu8_epi16(load16(e4m3)));
  return _mm512_mul_ps(_mm512_cvtph_ps(halves), set1(kHalfUnit));
}
inline F load_e2m1(const std::uint8_t* codes) {
  const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 6, 8, 12, -0.0F, -1, -2, -3, -4, -6, -8, -12);
  const __m512i words =
      _mm512_broadcast_i32x2(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
  const __m512i spread = _mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), words);
  const __m512i shifts =
      _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  return _mm512_permutexvar_ps(_mm512_srlv_epi32(spread, shifts), table);  // uses 4 bits of each
}
inline void store(float* p, F a) { _mm512_storeu_ps(p, a); }
inline void store(Bf16* p, F a) {
  const __m512i bits = _mm512_castps_si512(a), top = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  const __m512i rounded =
      _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), nan, top, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(rounded));
}
inline void store(std::int8_t* p, F a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}

inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline F max(F a, F b) { return _mm512_max_ps(a, b); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline F abs(F a) { return _mm512_abs_ps(a); }
inline F power_of(F a) {
  return _mm512_and_ps(a, _mm512_castsi512_ps(_mm512_set1_epi32(0x7f800000)));
}
inline F round_even(F a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline F with_sign_of(F size, F sign) {
  const __m512 mask = set1(-0.0F);
  return _mm512_or_ps(_mm512_andnot_ps(mask, size), _mm512_and_ps(mask, sign));
}
inline F power_of_two(F n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}
inline F above(F a, float b, float then) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, set1(b), _CMP_GT_OQ), set1(then));
}
inline F at_least(F a, float b, float then) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, set1(b), _CMP_GE_OQ), set1(then));
}

inline __m256 fold(__m512 a) {
  return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}
inline float sum(F a) { return sum_ps(fold(fold(a))); }
inline void sum4(F a, F b, F c, F d, float* out) {
  sum4_ps(fold(a), fold(b), fold(c), fold(d), out);
}
inline float largest(F a) {
  return largest_ps(_mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}
inline void unzip(F lo, F hi, F& even, F& odd) {
  const __m512i evens =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  even = _mm512_permutex2var_ps(lo, evens, hi);
  odd = _mm512_permutex2var_ps(lo, _mm512_add_epi32(evens, _mm512_set1_epi32(1)), hi);
}
inline void zip(F even, F odd, F& lo, F& hi) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  lo = _mm512_permutex2var_ps(even, first, odd);
  hi = _mm512_permutex2var_ps(even, _mm512_add_epi32(first, _mm512_set1_epi32(8)), odd);
}

// ---- E4M3 to BF16, exactly ------------------------------------------------------------------------
// The high and the low bytes of the BF16 numbers of codes 0 to 127.
struct E4m3Bytes {
  alignas(64) std::uint8_t high[128], low[128];
};
constexpr E4m3Bytes e4m3_bytes() {
  E4m3Bytes r{};
  for (std::uint32_t code = 0; code < 128; ++code) {
    std::uint32_t bits = code == 0 ? 0 : code == 127 ? 0x7fc0U : (code << 4) + 0x3c00U;
    if (code > 0 && code < 8) {  // code x 2^-9
      const auto top = static_cast<std::uint32_t>(std::bit_width(code)) - 1;
      bits = (127 - 9 + top) << 7 | (code << (7 - top) & 0x7fU);
    }
    r.high[code] = static_cast<std::uint8_t>(bits >> 8);
    r.low[code] = static_cast<std::uint8_t>(bits);
  }
  return r;
}
constexpr E4m3Bytes kE4m3Bytes = e4m3_bytes();

// 64 codes; `first` are the numbers of the first 32.
inline void bf16_of_e4m3(__m512i codes, __m512i& first, __m512i& second) {
  // Unpacking works within lanes of 16 bytes: give each lane 8 codes of either half.
  const __m512i dealt = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), codes);
  const __m512i size = _mm512_permutex2var_epi8(load64(kE4m3Bytes.high), dealt,
                                                load64(kE4m3Bytes.high + 64));  // uses 7 bits
  const __m512i low =
      _mm512_permutex2var_epi8(load64(kE4m3Bytes.low), dealt, load64(kE4m3Bytes.low + 64));
  constexpr int kAOrBAndC = 0xf8;
  const __m512i high = _mm512_ternarylogic_epi64(size, dealt, _mm512_set1_epi8(-128), kAOrBAndC);
  first = _mm512_unpacklo_epi8(low, high);
  second = _mm512_unpackhi_epi8(low, high);
}

using Pairs = __m512i;
constexpr float kPairsE4m3Unit = 1;
inline void pairs2(const Bf16* p, Pairs& a, Pairs& b) {
  a = load64(p);
  b = load64(p + 32);
}
inline void pairs2(const std::uint8_t* e4m3, Pairs& a, Pairs& b) {
  bf16_of_e4m3(load64(e4m3), a, b);
}
inline F dot(F acc, Pairs w, Pairs x) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
}

// ---- NVFP4 ----------------------------------------------------------------------------------------
using Lanes = __m512i;
struct Codes {
  __m512i even, odd;  // biased, hence unsigned
};
// A vector that was loaded, in a register: the compiler would rather load it anew in every instruction
// that uses it, and loads are what this loop lacks.
template <class Vector>
inline Vector loaded(Vector v) {
  asm("" : "+v"(v));
  return v;
}
inline Codes decode(const std::uint8_t* codes) {
  // A table of 64 that repeats: the lookup uses 6 bits, the upper two of which may be anything.
  const __m128i biased = _mm_add_epi8(load16(kDoubledE2m1), _mm_set1_epi8(Nvfp4Layout::kBias));
  const __m512i table = _mm512_broadcast_i32x4(biased), bytes = loaded(load64(codes));
  return {_mm512_permutexvar_epi8(bytes, table),
          _mm512_permutexvar_epi8(_mm512_srli_epi16(bytes, 4), table)};
}
struct TokenLanes {
  __m512i even, odd, starts;
  F scales;
};
inline TokenLanes token_lanes(const std::int8_t* even, const std::int8_t* odd,
                              const std::int32_t* starts, const float* scales) {
  return {loaded(load64(even)), loaded(load64(odd)), loaded(load64(starts)), loaded(load(scales))};
}
inline Lanes dot(const Codes& w, const TokenLanes& x) {
  return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(x.starts, w.even, x.even), w.odd, x.odd);
}
inline F to_float(Lanes a) { return _mm512_cvtepi32_ps(a); }
inline void store(std::int32_t* p, Lanes a) { _mm512_storeu_si512(p, a); }
inline F load_twice(const Bf16* p) {
  const __m512i eight = _mm512_broadcast_i32x4(load16(p));
  const __m512i places =
      _mm512_setr_epi32(0, 0, 1 << 16, 1 << 16, 2 << 16, 2 << 16, 3 << 16, 3 << 16, 4 << 16,
                        4 << 16, 5 << 16, 5 << 16, 6 << 16, 6 << 16, 7 << 16, 7 << 16);
  constexpr __mmask32 kUpperHalves = 0xaaaaaaaa;
  return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(kUpperHalves, places, eight));
}

// ---- memory ---------------------------------------------------------------------------------------
inline void to_bf16_64(const std::uint8_t* e4m3, Bf16* out) {
  __m512i first, second;
  bf16_of_e4m3(load64(e4m3), first, second);
  _mm512_storeu_si512(out, first);
  _mm512_storeu_si512(out + 32, second);
}
inline void stream_as_bf16(const std::uint8_t* e4m3, Bf16* out) {
  __m512i first, second;
  bf16_of_e4m3(load64(e4m3), first, second);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(out), first);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(out + 32), second);
}
using Line = __m512i;
inline Line load_line(const std::byte* p) { return load64(p); }
inline void stream(std::byte* p, Line a) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), a); }
inline Line mix(Line a, Line b) { return _mm512_xor_si512(a, b); }

}  // namespace
}  // namespace culprit::lab
