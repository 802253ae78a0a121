// Linear layers whose weights are numbers on their own: BF16, E4M3, F32, F16, and NVFP4 with wide
// activations. `each_row` is the frame of all linear kernels: a weight row is read from memory once,
// and multiplied with up to kGroup tokens while it is being decoded; for more tokens it is in the
// cache. A token's sums are added up in the same order whatever the group, so that batches agree.
#pragma once

#include "lab/kernels/simd/rows.h"

namespace culprit::lab {
namespace {

constexpr int kGroup = 4;

// How far ahead of its use a weight is asked for: the hardware's own prefetching stops at a page.
constexpr std::int64_t kAhead = 2048;
inline void ask_ahead(const std::byte* p) { __builtin_prefetch(p + kAhead, 0, 3); }

// rows.dot<T>(row, x, out): the products of a row with T prepared tokens.
template <class Rows>
inline void each_row(const Rows& rows, const Batch& x, std::int64_t begin, std::int64_t end,
                     float* y, std::int64_t y_stride) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t first = 0; first < x.tokens; first += kGroup) {
      const std::byte* tokens[kGroup] = {};
      float out[kGroup];
      const auto count = static_cast<int>(least(kGroup, x.tokens - first));
      for (int t = 0; t < count; ++t) tokens[t] = x.token(first + t);
      if (count == 1) rows.template dot<1>(row, tokens, out);
      if (count == 2) rows.template dot<2>(row, tokens, out);
      if (count == 3) rows.template dot<3>(row, tokens, out);
      if (count == 4) rows.template dot<4>(row, tokens, out);
      for (int t = 0; t < count; ++t) y[(first + t) * y_stride + row] = out[t];
    }
  }
}

// ---- BF16 and E4M3, with activations in BF16 --------------------------------------------------------
constexpr std::int64_t kPairStep = 4 * W;  // what pairs2 reads

template <std::size_t T, class Code>
inline void add_pairs(const Code* w, const std::byte* const* x, std::int64_t at, F (&acc)[T][2]) {
  Pairs wa, wb, xa, xb;
  pairs2(w, wa, wb);
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t) {
    pairs2(part<Bf16>(x[t]) + at, xa, xb);
    acc[t][0] = dot(acc[t][0], wa, xa);
    acc[t][1] = dot(acc[t][1], wb, xb);
  }
}

// Columns [from, to) of a row; `w` is the whole row.
template <std::size_t T, class Code>
inline void pair_sums(const Code* w, const std::byte* const* x, std::int64_t from, std::int64_t to,
                      F (&sums)[T]) {
  F acc[T][2];
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t) acc[t][0] = acc[t][1] = zero();
  std::int64_t i = from;
  for (; i + kPairStep <= to; i += kPairStep) {
    for (std::int64_t line = 0; line < kPairStep; line += 64 / std::int64_t{sizeof(Code)})
      ask_ahead(reinterpret_cast<const std::byte*>(w + i + line));
    add_pairs<T>(w + i, x, i, acc);
  }
  if (i < to) {
    Code rest[kPairStep] = {};
    std::memcpy(rest, w + i, static_cast<std::size_t>(to - i) * sizeof(Code));
    add_pairs<T>(rest, x, i, acc);
  }
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t) sums[t] = add(acc[t][0], acc[t][1]);
}

template <class Code>
struct PairRows {
  const Matrix& m;
  float unit;

  template <std::size_t T>
  void dot(std::int64_t row, const std::byte* const* x, float* out) const {
    const auto* const w = reinterpret_cast<const Code*>(m.data) + row * m.cols;
    F sums[T], total[T];
    if (m.block_scales == nullptr) {
      pair_sums<T>(w, x, 0, m.cols, total);
    } else {
      CULPRIT_UNROLL
      for (F& t : total) t = zero();
      const std::int64_t blocks = (m.cols + m.scale_block - 1) / m.scale_block;
      const std::byte* scale = m.block_scales + row / m.scale_block * blocks * 4;
      for (std::int64_t i = 0; i < m.cols; i += m.scale_block, scale += 4) {
        pair_sums<T>(w, x, i, least(i + m.scale_block, m.cols), sums);
        CULPRIT_UNROLL
        for (std::size_t t = 0; t < T; ++t)
          total[t] = fma(sums[t], set1(load_as<float>(scale)), total[t]);
      }
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) out[t] = sum(total[t]) * (m.scale * unit);
  }
};

// ---- F32, F16 and NVFP4, with activations as they are ------------------------------------------------
struct WideF32 {
  static constexpr std::int64_t kBytes = 4 * W;  // of a vector
  static F load_at(const std::byte* row, std::int64_t i) {
    return load(reinterpret_cast<const float*>(row) + i);
  }
};
struct WideF16 {
  static constexpr std::int64_t kBytes = 2 * W;
  static F load_at(const std::byte* row, std::int64_t i) {
    return load_half(reinterpret_cast<const std::uint16_t*>(row) + i);
  }
};

template <class Wide>
struct WideRows {
  const Matrix& m;

  template <std::size_t T>
  void dot(std::int64_t row, const std::byte* const* x, float* out) const {
    const std::byte* const w = m.data + row * m.row_bytes();
    F acc[T][2];
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) acc[t][0] = acc[t][1] = zero();
    std::int64_t i = 0;
    for (; i + 2 * W <= m.cols; i += 2 * W) {
      ask_ahead(w + i / W * Wide::kBytes);
      const F a = Wide::load_at(w, i), b = Wide::load_at(w, i + W);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        acc[t][0] = fma(a, load(part<float>(x[t]) + i), acc[t][0]);
        acc[t][1] = fma(b, load(part<float>(x[t]) + i + W), acc[t][1]);
      }
    }
    for (; i < m.cols; i += W) {
      std::byte rest[Wide::kBytes] = {};
      const std::int64_t bytes = least(W, m.cols - i) * (Wide::kBytes / W);
      std::memcpy(rest, w + i * (Wide::kBytes / W), static_cast<std::size_t>(bytes));
      const F a = Wide::load_at(rest, 0);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t)
        acc[t][0] = fma(a, load(part<float>(x[t]) + i), acc[t][0]);
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) out[t] = sum(add(acc[t][0], acc[t][1])) * m.scale;
  }
};

struct WideNvfp4Rows {
  const Matrix& m;

  template <std::size_t T>
  static void add_block(const std::byte* codes, float block_scale, const std::byte* const* x,
                        std::int64_t at, F (&acc)[T]) {
    const F scale = set1(block_scale);
    for (std::int64_t i = 0; i < kNvfp4Block; i += W) {
      const F w = mul(load_e2m1(reinterpret_cast<const std::uint8_t*>(codes) + i / 2), scale);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) acc[t] = fma(w, load(part<float>(x[t]) + at + i), acc[t]);
    }
  }

  template <std::size_t T>
  void dot(std::int64_t row, const std::byte* const* x, float* out) const {
    const std::int64_t blocks = m.cols / kNvfp4Block;
    const std::byte* const codes = m.data + row * blocks * 8;
    const auto* const scales = reinterpret_cast<const std::uint8_t*>(m.block_scales) + row * blocks;
    const float* const values = e4m3_values().data();
    F acc[T], other[T];
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) acc[t] = other[t] = zero();
    std::int64_t b = 0;
    for (; b + 2 <= blocks; b += 2) {
      ask_ahead(codes + 8 * b);
      add_block<T>(codes + 8 * b, values[scales[b]], x, 16 * b, acc);
      add_block<T>(codes + 8 * b + 8, values[scales[b + 1]], x, 16 * b + 16, other);
    }
    if (b < blocks) add_block<T>(codes + 8 * b, values[scales[b]], x, 16 * b, acc);
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t)
      out[t] = sum(add(acc[t], other[t])) * (m.scale * 0.5F);  // codes were doubled
  }
};

}  // namespace
}  // namespace culprit::lab
