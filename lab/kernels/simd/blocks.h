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
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T],
                  float (&)[T]) {
    const float d = half_at(p);
    const Bytes w = load_bytes(bytes_at(p) + 2);
    for (std::size_t t = 0; t < T; ++t)
      acc[t] = add_scaled(acc[t], dot_signed(w, x[t].q + 32 * b), d * x[t].scales[b]);
  }
};

struct Mxfp4Kind {
  using Block = BlockMxfp4;
  static constexpr std::int64_t kScaled = 32;
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T],
                  float (&)[T]) {
    const float d = from_e8m0(load_as<std::uint8_t>(p)) * 0.5F;  // codes are doubled
    const Bytes w = halves_of_e2m1(bytes_at(p) + 1);
    for (std::size_t t = 0; t < T; ++t)
      acc[t] = add_scaled(acc[t], dot_signed(w, x[t].q + 32 * b), d * x[t].scales[b]);
  }
};

struct Nvfp4Kind {
  using Block = BlockNvfp4;
  static constexpr std::int64_t kScaled = 32;
  static float scale_at(const std::byte* p) {
    const auto code = load_as<std::uint8_t>(p);  // UE4M3: no sign, and its NaN is zero
    return code == 0x7f ? 0 : lab::from_e4m3(code & 0x7fU) * 0.5F;
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T],
                  float (&)[T]) {
    for (std::int64_t half = 0; half < 2; ++half) {
      const float first = scale_at(p + 2 * half), second = scale_at(p + 2 * half + 1);
      const Bytes w = quarters_of_e2m1(bytes_at(p) + 4 + 16 * half);
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
  // 6-bit scales and mins of the 8 sub-blocks, as bytes.
  static void unpack(const std::uint8_t* packed, std::uint8_t (&scale)[8], std::uint8_t (&min)[8]) {
    for (int j = 0; j < 4; ++j) {
      scale[j] = packed[j] & 63;
      min[j] = packed[j + 4] & 63;
      scale[j + 4] = static_cast<std::uint8_t>((packed[j + 8] & 15) | packed[j] >> 6 << 4);
      min[j + 4] = static_cast<std::uint8_t>(packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4);
    }
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T],
                  float (&low)[T]) {
    const float d = half_at(p), dmin = half_at(p + 2);
    std::uint8_t scale[8], min[8];
    unpack(bytes_at(p) + 4, scale, min);
    for (int j = 0; j < 8; j += 2) {
      const Bytes both = load_bytes(bytes_at(p) + 16 + 16 * j);
      const Bytes even = low_nibbles(both), odd = high_nibbles(both);
      for (std::size_t t = 0; t < T; ++t) {
        const std::int8_t* const q = x[t].q + 256 * b + 32 * j;
        const float s = d * x[t].scales[b];
        acc[t] = add_scaled(acc[t], dot_unsigned(even, q), s * scale[j]);
        acc[t] = add_scaled(acc[t], dot_unsigned(odd, q + 32), s * scale[j + 1]);
      }
    }
    for (std::size_t t = 0; t < T; ++t) {
      std::int32_t total = 0;
      for (int j = 0; j < 8; ++j) total += min[j] * x[t].sums[8 * b + j];
      low[t] += dmin * x[t].scales[b] * static_cast<float>(total);
    }
  }
};

struct Q6Kind {
  using Block = BlockQ6_K;
  static constexpr std::int64_t kScaled = 256;
  template <std::size_t T, int K>
  static void add_quarter(Bytes low, Bytes pairs, const std::int8_t* scales, float d,
                          std::int64_t at, std::int64_t b, const Int8Token (&x)[T],
                          Octet (&acc)[T]) {
    const Bytes w = minus_32(either(low, pair_of_bits<K>(pairs)));
    for (std::size_t t = 0; t < T; ++t) {
      const float s = d * x[t].scales[b];
      const Ints products = dot_signed(w, x[t].q + at + 32 * K);
      acc[t] = add_scaled(acc[t], products, s * scales[2 * K], s * scales[2 * K + 1]);
    }
  }
  template <std::size_t T>
  static void add(const std::byte* p, std::int64_t b, const Int8Token (&x)[T], Octet (&acc)[T],
                  float (&)[T]) {
    const float d = half_at(p + 208);
    for (std::int64_t half = 0; half < 2; ++half) {
      const Bytes first = load_bytes(bytes_at(p) + 64 * half);
      const Bytes second = load_bytes(bytes_at(p) + 64 * half + 32);
      const Bytes pairs = load_bytes(bytes_at(p) + 128 + 32 * half);
      const auto* const scales = reinterpret_cast<const std::int8_t*>(p) + 192 + 8 * half;
      const std::int64_t at = 256 * b + 128 * half;
      add_quarter<T, 0>(low_nibbles(first), pairs, scales, d, at, b, x, acc);
      add_quarter<T, 1>(low_nibbles(second), pairs, scales, d, at, b, x, acc);
      add_quarter<T, 2>(high_nibbles(first), pairs, scales, d, at, b, x, acc);
      add_quarter<T, 3>(high_nibbles(second), pairs, scales, d, at, b, x, acc);
    }
  }
};

template <class Kind>
struct BlockRows {
  const Matrix& m;

  template <std::size_t T>
  void dot(std::int64_t row, const std::byte* const* x, float* out) const {
    constexpr std::int64_t kBytes = sizeof(typename Kind::Block);
    const std::byte* p = m.data + row * m.row_bytes();
    Int8Token tokens[T];
    int8_tokens<T>(x, Int8Layout(m.cols, Kind::kScaled), tokens);
    Octet acc[T];
    float low[T] = {};  // what the mins take away
    for (Octet& a : acc) a = no_octet();
    const std::int64_t blocks = m.cols / Kind::Block::kValues;
    for (std::int64_t b = 0; b < blocks; ++b, p += kBytes) {
      for (std::int64_t line = 0; line < kBytes; line += 64) ask_ahead(p + line);
      Kind::template add<T>(p, b, tokens, acc, low);
    }
    for (std::size_t t = 0; t < T; ++t) out[t] = (sum_octet(acc[t]) - low[t]) * m.scale;
  }
};

}  // namespace
}  // namespace culprit::lab
