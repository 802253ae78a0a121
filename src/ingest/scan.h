// Scan: the byte-level steps of the JSON event parser over a buffer whose end is marked by a zero
// byte followed by at least kPadding readable bytes, so that no step needs a bounds check. SSE2
// where the compiler has it, else 8 bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace culprit::ingest {

inline constexpr std::size_t kPadding = 64;

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

inline const char* skip_space(const char* p) {
  while (is_space(*p)) ++p;
  return p;
}

// The first quote, backslash or control byte (below 0x20, the end marker among them) at or after p.
inline const char* find_string_stop(const char* p) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'),
                control = _mm_set1_epi8(0x1f);
  for (;; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)),
                     _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) return p + std::countr_zero(mask);
  }
#else
  constexpr std::uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
  for (;; p += 8) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    const std::uint64_t q = v ^ (ones * '"'), b = v ^ (ones * '\\');
    const std::uint64_t hit =
        (((q - ones) & ~q) | ((b - ones) & ~b) | ((v - ones * 0x20) & ~v)) & high;
    if (hit != 0) {
      while (static_cast<unsigned char>(*p) >= 0x20 && *p != '"' && *p != '\\') ++p;
      return p;
    }
  }
#endif
}

// The first quote, bracket, brace or end marker at or after p: what matters while skipping a nested
// value.
inline const char* find_structure(const char* p) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
  const __m128i fold = _mm_set1_epi8(0x20), zero = _mm_setzero_si128();
  for (;; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i folded = _mm_or_si128(v, fold);  // '[' and ']' become '{' and '}'
    const __m128i hit =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, zero)),
                     _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) return p + std::countr_zero(mask);
  }
#else
  while (*p != '"' && *p != '{' && *p != '}' && *p != '[' && *p != ']' && *p != '\0') ++p;
  return p;
#endif
}

// The first byte at or after p that ends a number or bare word: comma, closing bracket or brace,
// quote, white space, control.
inline const char* find_scalar_end(const char* p) {
#if defined(__SSE2__)
  const __m128i comma = _mm_set1_epi8(','), close = _mm_set1_epi8('}'), fold = _mm_set1_epi8(0x20);
  const __m128i space = _mm_set1_epi8(' '), quote = _mm_set1_epi8('"');
  for (;; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(v, comma), _mm_cmpeq_epi8(_mm_or_si128(v, fold), close)),
        _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v), _mm_cmpeq_epi8(v, quote)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) return p + std::countr_zero(mask);
  }
#else
  while (static_cast<unsigned char>(*p) > ' ' && *p != ',' && *p != '}' && *p != ']' && *p != '"')
    ++p;
  return p;
#endif
}

#if defined(__SSE2__)
// 64 bytes of text as bit masks, bit i for byte i.
struct Masks {
  std::uint64_t quote = 0, bracket = 0, backslash = 0,
                control = 0;  // bracket: [ ] { }; control: below 0x20
};
inline Masks masks_of(const char* p) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'),
                control = _mm_set1_epi8(0x1f);
  const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), fold = _mm_set1_epi8(0x20);
  Masks m;
  for (int i = 0; i < 64; i += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
    const __m128i folded = _mm_or_si128(v, fold);
    const auto put = [&](std::uint64_t& mask, __m128i hit) {
      mask |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(hit))) << i;
    };
    put(m.quote, _mm_cmpeq_epi8(v, quote));
    put(m.backslash, _mm_cmpeq_epi8(v, backslash));
    put(m.bracket, _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close)));
    put(m.control, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
  }
  return m;
}
// Bit i set: an odd number of bits up to and with i are set in `bits`.
template <class Bits>
Bits prefix_xor(Bits bits) {
  for (std::size_t shift = 1; shift < sizeof bits * 8; shift *= 2) bits ^= bits << shift;
  return bits;
}

// p behind a list's opening bracket; returns behind its closing one if the list holds nothing but numbers, strings and
// lists of such: [[1, 4096], ["a"], []]. Null for what is deeper or holds braces, backslashes, line breaks or bytes outside
// ASCII. As quotes tell by their parity what is inside a string, so do brackets what is inside an inner list. 32 bytes a
// step: most lists of shapes are shorter.
[[gnu::noinline]] inline const char* shallow_list_end(const char* p) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('['), close = _mm_set1_epi8(']');
  const __m128i space = _mm_set1_epi8(' '), beyond = _mm_set1_epi8('z' - ' ' + 1);
  std::uint32_t in_string = 0,
                outside = ~std::uint32_t{0};  // all ones or none, as of the byte in front of p
  for (;; p += 32) {
    std::uint32_t quotes = 0, opens = 0, closes = 0, odd = 0;
    for (int i = 0; i < 32; i += 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
      const __m128i from_space = _mm_sub_epi8(v, space);  // what is not in ' '..'z' becomes large
      const auto put = [&](std::uint32_t& mask, __m128i hit) {
        mask |= static_cast<std::uint32_t>(_mm_movemask_epi8(hit)) << i;
      };
      put(quotes, _mm_cmpeq_epi8(v, quote));
      put(opens, _mm_cmpeq_epi8(v, open));
      put(closes, _mm_cmpeq_epi8(v, close));
      put(odd, _mm_or_si128(_mm_cmpeq_epi8(v, backslash),
                            _mm_cmpeq_epi8(_mm_max_epu8(from_space, beyond), from_space)));
    }
    const std::uint32_t inside = prefix_xor(quotes) ^ in_string;
    opens &= ~inside;
    closes &= ~inside;
    const std::uint32_t outer = prefix_xor(opens | closes) ^ outside;
    const std::uint32_t stops = odd | (opens & outer) | (closes & ~outer);
    if (stops != 0) {
      const int first = std::countr_zero(stops);
      return (closes >> first & 1U) != 0 ? p + first + 1 : nullptr;
    }
    in_string = std::uint32_t{0} - (inside >> 31);
    outside = std::uint32_t{0} - (outer >> 31);
  }
}
#endif

// Bit i set: bytes i of p and q differ, i < 16.
inline std::uint32_t differing16(const char* p, const char* q) {
#if defined(__SSE2__)
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b))) ^ 0xffffU;
#else
  std::uint32_t differ = 0;
  for (std::uint32_t i = 0; i < 16; ++i) differ |= (p[i] != q[i] ? 1U : 0U) << i;
  return differ;
#endif
}

}  // namespace culprit::ingest
