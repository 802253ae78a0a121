// Linear layers whose weights are numbers on their own: BF16, E4M3, F32, F16, and NVFP4 with wide
// activations. `each_row` is the frame of all linear kernels: a weight row is read from memory once,
// and multiplied with up to kGroup tokens while it is being decoded; for more tokens it is in the
// cache. The sum of one row and one token is added up in the same order whatever the group, so that
// batches and divisions of the work agree.
//
// What each format does at batch 1 was measured against the bus, on Zen 4 and on Emerald Rapids. Where
// decoding is cheap, rows in order are one stream, which Zen 4 foresees: two rows at once or a prefetch
// of ours cost it up to a fifth (BF16, E4M3, Q8_0). Where decoding takes about as long as the bus
// (kRows 2), two rows share the loads of the activations, and asking ahead lets the bus work meanwhile
// (NVFP4: from 55 to 70 % of the bus). The two are taken from either half of the range, so that each is
// a stream: two neighbours would each jump over the other, which costs half of the bandwidth. An Intel
// core foresees less, and gains by asking far ahead in all formats (BF16: from 69 to 92 % of what a
// thread reads, E4M3 from 43 to 82 %); how far is ask_ahead_bytes() in lab/kernels/isa.h.
#pragma once

#include "lab/kernels/simd/rows.h"

namespace culprit::lab {
namespace {

constexpr int kGroup = 4;

// Asks for what comes `ahead` bytes later, if anything; 0: leaves it to the hardware. As a number:
// behind the end of an array there is no pointer.
CULPRIT_INLINE void ask_ahead(const void* p, std::int64_t ahead) {
  if (ahead == 0) return;
  const auto at = reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(ahead);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 3);  // NOLINT(performance-no-int-to-ptr)
}
// The lines of `bytes` from p on.
CULPRIT_INLINE void ask_lines_ahead(const void* p, std::int64_t bytes, std::int64_t ahead) {
  if (ahead == 0) return;
  CULPRIT_UNROLL
  for (std::int64_t line = 0; line < bytes; line += 64) ask_ahead(p, ahead + line);
}

inline constexpr std::int64_t signed_of(std::size_t i) { return static_cast<std::int64_t>(i); }

// Rows of a kind that are multiplied together with T tokens.
template <class Rows, std::size_t T>
constexpr std::size_t rows_at_once() {
  return T == 1 ? Rows::kRows : 2;
}

// rows.dot<R, T>(row, step, x, out): the products of rows row, row + step, ... with T prepared tokens.
// Here: of `row`, and of row + step if that is before `end`.
template <std::size_t T, class Rows>
inline void one_or_two_rows(const Rows& rows, std::int64_t row, std::int64_t step, std::int64_t end,
                            const std::byte* const* x, float* y, std::int64_t y_stride) {
  constexpr std::size_t R = rows_at_once<Rows, T>();
  float out[2][T] = {};
  const bool two = row + step < end;
  if (R == 2 && two) {
    rows.template dot<R, T>(row, step, x, out);
  } else {
    rows.template dot<1, T>(row, step, x, out);
    if (two) rows.template dot<1, T>(row + step, step, x, out + 1);
  }
  for (std::size_t t = 0; t < T; ++t) {
    float* const to = y + signed_of(t) * y_stride + row;
    to[0] = out[0][t];
    if (two) to[step] = out[1][t];
  }
}

template <class Rows>
inline void each_row(const Rows& rows, const Batch& x, std::int64_t begin, std::int64_t end,
                     float* y, std::int64_t y_stride) {
  const std::int64_t rows_together = x.tokens == 1 ? signed_of(Rows::kRows) : 2;
  const std::int64_t step = (end - begin + rows_together - 1) / rows_together;
  for (std::int64_t row = begin; row < begin + step; ++row) {
    for (std::int64_t first = 0; first < x.tokens; first += kGroup) {
      const std::byte* tokens[kGroup] = {};
      const std::int64_t count = least(kGroup, x.tokens - first);
      for (std::int64_t t = 0; t < count; ++t) tokens[t] = x.token(first + t);
      float* const to = y + first * y_stride;
      if (count == 1) one_or_two_rows<1>(rows, row, step, end, tokens, to, y_stride);
      if (count == 2) one_or_two_rows<2>(rows, row, step, end, tokens, to, y_stride);
      if (count == 3) one_or_two_rows<3>(rows, row, step, end, tokens, to, y_stride);
      if (count == 4) one_or_two_rows<4>(rows, row, step, end, tokens, to, y_stride);
    }
  }
}

// ---- BF16 and E4M3, with activations in BF16 --------------------------------------------------------
constexpr std::int64_t kPairStep = 4 * W;  // what pairs2 reads
constexpr std::int64_t kUsualBlock = 128;  // columns that share a scale

// Sums of R rows and T tokens, each in two parts.
template <std::size_t R, std::size_t T>
using Sums = F[R][T][2];

template <std::size_t R, std::size_t T>
CULPRIT_INLINE void clear_sums(Sums<R, T>& sums) {
  CULPRIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) sums[r][t][0] = sums[r][t][1] = zero();
  }
}

template <std::size_t R, std::size_t T, class Code>
CULPRIT_INLINE void add_pairs(const Code* const* w, std::int64_t w_at, const std::byte* const* x,
                              std::int64_t x_at, std::int64_t ahead, Sums<R, T>& acc) {
  Pairs wa[R], wb[R], xa, xb;
  CULPRIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    ask_lines_ahead(w[r] + w_at, kPairStep * signed_of(sizeof(Code)), ahead);
    pairs2(w[r] + w_at, wa[r], wb[r]);
  }
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t) {
    pairs2(part<Bf16>(x[t]) + x_at, xa, xb);
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      acc[r][t][0] = dot(acc[r][t][0], wa[r], xa);
      acc[r][t][1] = dot(acc[r][t][1], wb[r], xb);
    }
  }
}

// Columns [from, to) of R rows, each of which begins at its w.
template <std::size_t R, std::size_t T, class Code>
CULPRIT_INLINE void pair_sums(const Code* const* w, const std::byte* const* x, std::int64_t from,
                              std::int64_t to, std::int64_t ahead, Sums<R, T>& acc) {
  clear_sums<R, T>(acc);
  std::int64_t i = from;
  for (; i + kPairStep <= to; i += kPairStep) add_pairs<R, T>(w, i, x, i, ahead, acc);
  if (i == to) return;
  Code rest[R][kPairStep] = {};
  const Code* rests[R];
  for (std::size_t r = 0; r < R; ++r) {
    std::memcpy(rest[r], w[r] + i, static_cast<std::size_t>(to - i) * sizeof(Code));
    rests[r] = rest[r];
  }
  add_pairs<R, T>(rests, 0, x, i, 0, acc);
}

template <class Code, bool kScaled>  // kScaled: a scale per block
struct PairRows {
  static constexpr std::size_t kRows = W < 16 ? 2 : 1;  // narrow vectors decode slowly
  const Matrix& m;
  float unit;  // what a decoded weight is to be multiplied by
  std::int64_t ahead = ask_ahead_bytes().fast;

  template <std::size_t R, std::size_t T>
  void dot(std::int64_t row, std::int64_t step, const std::byte* const* x, float (*out)[T]) const {
    const Code* w[R];
    for (std::size_t r = 0; r < R; ++r)
      w[r] = reinterpret_cast<const Code*>(m.data) + (row + signed_of(r) * step) * m.cols;
    Sums<R, T> total;
    if constexpr (!kScaled)
      pair_sums<R, T>(w, x, 0, m.cols, ahead, total);
    else
      scaled_sums<R, T>(w, row, step, x, total);
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t)
        out[r][t] = sum(add(total[r][t][0], total[r][t][1])) * (m.scale * unit);
    }
  }

  // Each block of columns by its scale; two rows may lie in blocks of their own.
  template <std::size_t R, std::size_t T>
  CULPRIT_INLINE void scaled_sums(const Code* const* w, std::int64_t row, std::int64_t step,
                                  const std::byte* const* x, Sums<R, T>& total) const {
    const std::int64_t blocks = (m.cols + m.scale_block - 1) / m.scale_block;
    const std::byte* scales[R];
    for (std::size_t r = 0; r < R; ++r)
      scales[r] = m.block_scales + (row + signed_of(r) * step) / m.scale_block * blocks * 4;
    clear_sums<R, T>(total);
    std::int64_t b = 0;
    if (m.scale_block == kUsualBlock) {  // whole ones of the usual size, without loops in loops
      for (; (b + 1) * kUsualBlock <= m.cols; ++b) {
        Sums<R, T> acc;
        clear_sums<R, T>(acc);
        CULPRIT_UNROLL
        for (std::int64_t i = 0; i < kUsualBlock; i += kPairStep)
          add_pairs<R, T>(w, b * kUsualBlock + i, x, b * kUsualBlock + i, ahead, acc);
        add_scaled_sums<R, T>(acc, scales, b, total);
      }
    }
    for (; b < blocks; ++b) {
      Sums<R, T> acc;
      pair_sums<R, T>(w, x, b * m.scale_block, least((b + 1) * m.scale_block, m.cols), ahead, acc);
      add_scaled_sums<R, T>(acc, scales, b, total);
    }
  }

  template <std::size_t R, std::size_t T>
  CULPRIT_INLINE static void add_scaled_sums(const Sums<R, T>& acc, const std::byte* const* scales,
                                             std::int64_t b, Sums<R, T>& total) {
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const F scale = set1(load_as<float>(scales[r] + 4 * b));
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t)
        total[r][t][0] = fma(add(acc[r][t][0], acc[r][t][1]), scale, total[r][t][0]);
    }
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

// acc[r][t] += one vector of each row times that of each token.
template <class Wide, std::size_t R, std::size_t T>
CULPRIT_INLINE void add_wide(const std::byte* const* w, std::int64_t w_at,
                             const std::byte* const* x, std::int64_t x_at, F (&acc)[R][T]) {
  F weights[R];
  CULPRIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) weights[r] = Wide::load_at(w[r], w_at);
  CULPRIT_UNROLL
  for (std::size_t t = 0; t < T; ++t) {
    const F value = load(part<float>(x[t]) + x_at);
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) acc[r][t] = fma(weights[r], value, acc[r][t]);
  }
}

template <std::size_t R, std::size_t T>
CULPRIT_INLINE void clear(F (&acc)[R][T]) {
  CULPRIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) acc[r][t] = zero();
  }
}

template <std::size_t R, std::size_t T>
CULPRIT_INLINE void finish_sums(const F (&a)[R][T], const F (&b)[R][T], float scale,
                                float (*out)[T]) {
  CULPRIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) out[r][t] = sum(add(a[r][t], b[r][t])) * scale;
  }
}

template <class Wide>
struct WideRows {
  static constexpr std::size_t kRows = 2;  // the activations are as large as the weights
  const Matrix& m;
  std::int64_t ahead = ask_ahead_bytes().fast;

  template <std::size_t R, std::size_t T>
  void dot(std::int64_t row, std::int64_t step, const std::byte* const* x, float (*out)[T]) const {
    const std::byte* w[R];
    for (std::size_t r = 0; r < R; ++r) w[r] = m.data + (row + signed_of(r) * step) * m.row_bytes();
    F acc[R][T], other[R][T];
    clear<R, T>(acc);
    clear<R, T>(other);
    std::int64_t i = 0;
    for (; i + 2 * W <= m.cols; i += 2 * W) {
      for (std::size_t r = 0; r < R; ++r)
        ask_lines_ahead(w[r] + i * (Wide::kBytes / W), 2 * Wide::kBytes, ahead);
      add_wide<Wide, R, T>(w, i, x, i, acc);
      add_wide<Wide, R, T>(w, i + W, x, i + W, other);
    }
    for (; i < m.cols; i += W) {
      std::byte rest[R][Wide::kBytes] = {};
      const std::byte* rests[R];
      const std::int64_t bytes = least(W, m.cols - i) * (Wide::kBytes / W);
      for (std::size_t r = 0; r < R; ++r) {
        std::memcpy(rest[r], w[r] + i * (Wide::kBytes / W), static_cast<std::size_t>(bytes));
        rests[r] = rest[r];
      }
      add_wide<Wide, R, T>(rests, 0, x, i, acc);
    }
    finish_sums<R, T>(acc, other, m.scale, out);
  }
};

struct WideNvfp4Rows {
  static constexpr std::size_t kRows = 2;
  const Matrix& m;
  std::int64_t ahead = ask_ahead_bytes().slow;

  // Block b of one row; R rows of it share nothing but the activations.
  template <std::size_t T>
  CULPRIT_INLINE static void add_block(const std::byte* codes, float block_scale,
                                       const std::byte* const* x, std::int64_t at, F (&acc)[T]) {
    const F scale = set1(block_scale);
    CULPRIT_UNROLL
    for (std::int64_t i = 0; i < kNvfp4Block; i += W) {
      const F w = mul(load_e2m1(reinterpret_cast<const std::uint8_t*>(codes) + i / 2), scale);
      CULPRIT_UNROLL
      for (std::size_t t = 0; t < T; ++t) acc[t] = fma(w, load(part<float>(x[t]) + at + i), acc[t]);
    }
  }

  template <std::size_t R, std::size_t T>
  void dot(std::int64_t row, std::int64_t step, const std::byte* const* x, float (*out)[T]) const {
    const std::int64_t blocks = m.cols / kNvfp4Block;
    const std::byte* const codes = m.data + row * blocks * 8;
    const auto* const scales = reinterpret_cast<const std::uint8_t*>(m.block_scales) + row * blocks;
    const float* const values = e4m3_values().data();
    F acc[R][T], other[R][T];
    clear<R, T>(acc);
    clear<R, T>(other);
    for (std::int64_t b = 0; b < blocks; b += 2) {
      CULPRIT_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const std::int64_t at = signed_of(r) * step * blocks + b;
        if (b % 8 == 0) ask_ahead(codes + 8 * at, ahead);
        add_block<T>(codes + 8 * at, values[scales[at]], x, 16 * b, acc[r]);
        if (b + 1 < blocks)
          add_block<T>(codes + 8 * at + 8, values[scales[at + 1]], x, 16 * b + 16, other[r]);
      }
    }
    finish_sums<R, T>(acc, other, m.scale * 0.5F, out);  // codes were doubled
  }
};

}  // namespace
}  // namespace culprit::lab
