// What AVX2 and AVX-512 share: 256-bit vectors of 32 bytes and 8 floats for the blocks of ggml
// (Zen 4 runs two of them in the time of a 512-bit one), and the decoding of FP8 through half
// precision: E4M3's bits, moved to where a half has them, are the value times 2^-8, subnormals
// included; only NaN needs a hand. Included between a target's pragmas.
#pragma once

#include <immintrin.h>

#include "lab/kernels/simd/common.h"

namespace culprit::lab {
namespace {

constexpr float kHalfUnit = 256;  // a true value over its half

// 16-bit lanes that hold E4M3 codes to halves.
inline __m128i halves_of_e4m3(__m128i codes) {
  const __m128i moved = _mm_srai_epi16(_mm_slli_epi16(codes, 8), 1);  // the sign stays on top
  const __m128i half = _mm_and_si128(moved, _mm_set1_epi16(static_cast<short>(0xbfff)));
  const __m128i size = _mm_and_si128(half, _mm_set1_epi16(0x3f80));
  return _mm_or_si128(half, _mm_cmpeq_epi16(size, _mm_set1_epi16(0x3f80)));
}
inline __m256i halves_of_e4m3(__m256i codes) {
  const __m256i moved = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 1);
  const __m256i half = _mm256_and_si256(moved, _mm256_set1_epi16(static_cast<short>(0xbfff)));
  const __m256i size = _mm256_and_si256(half, _mm256_set1_epi16(0x3f80));
  return _mm256_or_si256(half, _mm256_cmpeq_epi16(size, _mm256_set1_epi16(0x3f80)));
}

inline __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m256i load32(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Eight numbers of 16 bits in one piece, through a register: `p` may lie anywhere.
inline __m256 bf16_to_float8(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
// Nearest, ties to even; NaN stays one. As integers: the instruction that does it drops subnormals.
inline __m256i bf16_bits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
}

inline float sum_ps(__m128 a) {
  const __m128 pairs = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}
inline __m128 fold(__m256 a) {
  return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}
inline float largest_ps(__m256 a) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline void sum4_ps(__m256 a, __m256 b, __m256 c, __m256 d, float* out) {
  const __m256 four = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  _mm_storeu_ps(out, fold(four));
}

// ---- 32 bytes -----------------------------------------------------------------------------------
using Bytes = __m256i;
using Octet = __m256;
using Ints = __m256i;

inline Bytes load_bytes(const std::uint8_t* p) { return load32(p); }
inline Bytes low_nibbles(Bytes a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
inline Bytes high_nibbles(Bytes a) { return low_nibbles(_mm256_srli_epi16(a, 4)); }
// Bits [2k, 2k + 2) of each byte, moved to bits 4 and 5.
template <int K>
inline Bytes pair_of_bits(Bytes a) {
  const __m256i moved = K < 2 ? _mm256_slli_epi16(a, 4 - 2 * K) : _mm256_srli_epi16(a, 2 * K - 4);
  return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
}
inline Bytes either(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
inline Bytes minus_32(Bytes a) { return _mm256_sub_epi8(a, _mm256_set1_epi8(32)); }

inline __m256i doubled_e2m1(__m256i codes) {
  const __m256i table = _mm256_broadcastsi128_si256(load16(kDoubledE2m1));
  return _mm256_shuffle_epi8(table, codes);
}
inline Bytes halves_of_e2m1(const std::uint8_t* p) {
  const __m128i codes = load16(p);
  return doubled_e2m1(low_nibbles(_mm256_set_m128i(_mm_srli_epi16(codes, 4), codes)));
}
inline Bytes quarters_of_e2m1(const std::uint8_t* p) {
  const __m128i low = load16(p), high = _mm_srli_epi16(low, 4);
  const __m256i codes =
      _mm256_set_m128i(_mm_unpackhi_epi64(low, high), _mm_unpacklo_epi64(low, high));
  return doubled_e2m1(low_nibbles(codes));
}

inline Ints dot_unsigned(Bytes w, const std::int8_t* x) {  // w below 64
#ifdef CULPRIT_LAB_VNNI
  return _mm256_dpbusd_epi32(_mm256_setzero_si256(), w, load32(x));
#else
  return _mm256_madd_epi16(_mm256_maddubs_epi16(w, load32(x)), _mm256_set1_epi16(1));
#endif
}
// The unsigned side of the instruction takes |w|; w's sign goes to x, which is at least -127.
inline Ints dot_signed(Bytes w, const std::int8_t* x) {
  const __m256i size = _mm256_abs_epi8(w), signed_x = _mm256_sign_epi8(load32(x), w);
#ifdef CULPRIT_LAB_VNNI
  return _mm256_dpbusd_epi32(_mm256_setzero_si256(), size, signed_x);
#else
  return _mm256_madd_epi16(_mm256_maddubs_epi16(size, signed_x), _mm256_set1_epi16(1));
#endif
}
inline Octet no_octet() { return _mm256_setzero_ps(); }
inline Octet add_scaled(Octet acc, Ints a, float scale) {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), _mm256_set1_ps(scale), acc);
}
// The first 4 lanes by one scale, the others by another.
inline Octet add_scaled(Octet acc, Ints a, float first, float second) {
  const __m256 scales = _mm256_set_m128(_mm_set1_ps(second), _mm_set1_ps(first));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), scales, acc);
}
inline Octet octet(const std::uint8_t* p, float scale) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), _mm256_set1_ps(scale));
}
inline Octet octet(const std::int8_t* p, float scale) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), _mm256_set1_ps(scale));
}
inline Octet octet(const std::int32_t* p, float scale) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(load32(p)), _mm256_set1_ps(scale));
}
inline Octet add_products(Octet acc, Octet a, Octet b) { return _mm256_fmadd_ps(a, b, acc); }
inline Octet add_octets(Octet a, Octet b) { return _mm256_add_ps(a, b); }
inline void store_octet(float* p, Octet a) { _mm256_storeu_ps(p, a); }
inline Octet scaled_octet(Octet acc, Octet a, float scale) {  // acc + a x scale
  return _mm256_fmadd_ps(a, _mm256_set1_ps(scale), acc);
}
inline float sum_octet(Octet a) { return sum_ps(fold(a)); }
inline float half_value(std::uint16_t bits) { return _cvtsh_ss(bits); }

inline void stream_end() { _mm_sfence(); }

}  // namespace
}  // namespace culprit::lab
