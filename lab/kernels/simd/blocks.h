// Linear layers over ggml's blocks, with activations in int8: 32 bytes of decoded weights at a time,
// multiplied exactly in whole numbers, then scaled and added up in 8 floats. A file's blocks lie at
// any address, so their fields are read through copies.
#pragma once

#include "lab/kernels/simd/linear.h"

namespace culprit::lab {
namespace {

// One prepared token in int8.
struct Int8Token {
  const std::int8_t* q;
  const std::int32_t* sums;
  const float* scales;
};
template <std::size_t T>
inline void int8_tokens(const std::byte* const* x, const Int8Layout& at, Int8Token (&tokens)[T]) {
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t)
    tokens[t] = {part<std::int8_t>(x[t]), part<std::int32_t>(x[t], at.sums()),
                 part<float>(x[t], at.scales())};
}

inline const std::uint8_t* bytes_at(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
}
inline float half_at(const std::byte* p) { return half_value(load_as<std::uint16_t>(p)); }

// Each kind adds its block b, at p, to the sums of T tokens.
struct Q8Kind {
  using Block = BlockQ8_0;
  static constexpr std::int64_t kScaled = 32;
  static constexpr bool kFast = true;
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T]) {
    const float d = half_at(p);
    const Bytes w = load_bytes(bytes_at(p) + 2);
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      acc[t] = add_scaled(acc[t], dot_signed(w, x[t].q + 32 * b), d * x[t].scales[b]);
  }
};

struct Mxfp4Kind {
  using Block = BlockMxfp4;
  static constexpr std::int64_t kScaled = 32;
  static constexpr bool kFast = false;
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T]) {
    const float d = half_e8m0(load_as<std::uint8_t>(p));
    const Bytes w = halves_of_e2m1(bytes_at(p) + 1);
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      acc[t] = add_scaled(acc[t], dot_signed(w, x[t].q + 32 * b), d * x[t].scales[b]);
  }
};

struct Nvfp4Kind {
  using Block = BlockNvfp4;
  static constexpr std::int64_t kScaled = 32;
  static constexpr bool kFast = false;
  // UE4M3, halved: no sign, and 0x7f is zero. A half's exponent has room for it, 2^8 too low.
  static float scale_at(const std::byte* p) {
    const auto code = load_as<std::uint8_t>(p);
    if (code == 0xff) return NAN;
    return code == 0x7f ? 0 : half_value(static_cast<std::uint16_t>((code & 0x7fU) << 7)) * 128;
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T]) {
    for (std::int64_t half = 0; half < 2; ++half) {
      const float first = scale_at(p + 2 * half), second = scale_at(p + 2 * half + 1);
      const Bytes w = quarters_of_e2m1(bytes_at(p) + 4 + 16 * half);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        const float s = x[t].scales[2 * b + half];
        const Ints products = dot_signed(w, x[t].q + 64 * b + 32 * half);
        acc[t] = add_scaled(acc[t], products, first * s, second * s);
      }
    }
  }
};

struct Q4Kind {
  using Block = BlockQ4_K;
  static constexpr std::int64_t kScaled = 256;
  static constexpr bool kFast = false;
  // 6-bit scales and mins of the 8 sub-blocks, as bytes, four at a time.
  struct Scales {
    std::uint32_t scale[2], min[2];
  };
  static Scales unpack(const std::byte* packed) {
    const auto a = load_as<std::uint32_t>(packed), b = load_as<std::uint32_t>(packed + 4);
    const auto c = load_as<std::uint32_t>(packed + 8);
    constexpr std::uint32_t kSix = 0x3f3f3f3f, kLow = 0x0f0f0f0f, kHigh = 0x30303030;
    return {{a & kSix, (c & kLow) | (a >> 2 & kHigh)},
            {b & kSix, (c >> 4 & kLow) | (b >> 2 & kHigh)}};
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T]) {
    const Scales packed = unpack(p + 4);
    float scale[8];
    store_octet(scale, octet(reinterpret_cast<const std::uint8_t*>(packed.scale), half_at(p)));
    const Octet mins = octet(reinterpret_cast<const std::uint8_t*>(packed.min), -half_at(p + 2));
    Octet block[T];
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      block[t] = add_products(no_octet(), mins, octet(x[t].sums + 8 * b, 1));
    CULPRIT_UNROLL
    for (std::int64_t j = 0; j < 8; j += 2) {
      const Bytes both = load_bytes(bytes_at(p) + 16 + 16 * j);
      const Bytes even = low_nibbles(both), odd = high_nibbles(both);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        const std::int8_t* const q = x[t].q + 256 * b + 32 * j;
        block[t] = add_scaled(block[t], dot_unsigned(even, q), scale[j]);
        block[t] = add_scaled(block[t], dot_unsigned(odd, q + 32), scale[j + 1]);
      }
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) acc[t] = scaled_octet(acc[t], block[t], x[t].scales[b]);
  }
};

struct Q6Kind {
  using Block = BlockQ6_K;
  static constexpr std::int64_t kScaled = 256;
  static constexpr bool kFast = false;
  // 32 values: sub-blocks with the scales at s.
  template <std::size_t T>
  static void add_part(Bytes low, Bytes high, const float* s, std::int64_t at,
                       const Int8Token (&x)[T], Octet (&block)[T]) {
    const Bytes w = minus_32(either(low, high));
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      block[t] = add_scaled(block[t], dot_signed(w, x[t].q + at), s[0], s[1]);
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T]) {
    const auto* const packed = reinterpret_cast<const std::int8_t*>(p) + 192;
    const float d = half_at(p + 208);
    float scale[16];
    store_octet(scale, octet(packed, d));
    store_octet(scale + 8, octet(packed + 8, d));
    Octet block[T];
    CULPRIT_UNROLL
    for (Octet& sum : block) sum = no_octet();
    CULPRIT_UNROLL
    for (std::int64_t half = 0; half < 2; ++half) {
      const Bytes first = load_bytes(bytes_at(p) + 64 * half);
      const Bytes second = load_bytes(bytes_at(p) + 64 * half + 32);
      const Bytes pairs = load_bytes(bytes_at(p) + 128 + 32 * half);
      const float* const s = scale + 8 * half;
      const std::int64_t at = 256 * b + 128 * half;
      add_part<T>(low_nibbles(first), pair_of_bits<0>(pairs), s, at, x, block);
      add_part<T>(low_nibbles(second), pair_of_bits<1>(pairs), s + 2, at + 32, x, block);
      add_part<T>(high_nibbles(first), pair_of_bits<2>(pairs), s + 4, at + 64, x, block);
      add_part<T>(high_nibbles(second), pair_of_bits<3>(pairs), s + 6, at + 96, x, block);
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) acc[t] = scaled_octet(acc[t], block[t], x[t].scales[b]);
  }
};

// Blocks go to two sums in turn: one would wait for its own additions.
template <class Kind>
struct BlockRows {
  static constexpr std::size_t kRows = 1;
  const Matrix& m;
  std::int64_t ahead = Kind::kFast ? ask_ahead_bytes().fast : ask_ahead_bytes().slow;

  template <std::size_t R, std::size_t T>
  void dot(std::int64_t row, std::int64_t step, const std::byte* const* x, float (*out)[T]) const {
    constexpr std::int64_t kBytes = sizeof(typename Kind::Block);
    const std::int64_t row_bytes = m.row_bytes();
    const std::byte* const first = m.data + row * row_bytes;
    Int8Token tokens[T];
    int8_tokens<T>(x, Int8Layout(m.cols, Kind::kScaled), tokens);
    Octet acc[R][T], other[R][T];
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) acc[r][t] = other[r][t] = no_octet();
    }
    const std::int64_t blocks = m.cols / Kind::Block::kValues;
    for (std::int64_t b = 0; b < blocks; b += 2) {
      CULPRIT_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const std::byte* const p = first + signed_of(r) * step * row_bytes + b * kBytes;
        ask_lines_ahead(p, 2 * kBytes, ahead);
        Kind::template add<T>(p, b, tokens, acc[r]);
        if (b + 1 < blocks) Kind::template add<T>(p + kBytes, b + 1, tokens, other[r]);
      }
    }
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t)
        out[r][t] = sum_octet(add_octets(acc[r][t], other[r][t])) * m.scale;
    }
  }
};

}  // namespace
}  // namespace culprit::lab
