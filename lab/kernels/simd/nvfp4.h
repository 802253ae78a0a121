// NVFP4 weights times NVFP4 activations: the sum of a block's 16 products of doubled codes is a whole
// number, exact on every target; the scales, and the adding up of blocks, are in float. Each lane
// holds half a block, and its scale is the block's.
#pragma once

#include "lab/kernels/simd/linear.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kCodeBytes = 4 * W, kLaneBlocks = W / 2;  // of one vector of codes
constexpr std::int64_t kScalesAtOnce = 64;

struct Nvfp4Token {
  const std::int8_t *even, *odd;
  const std::int32_t* starts;
  const float* scales;

  TokenLanes lanes_from(std::int64_t block) const {
    return token_lanes(even + 8 * block, odd + 8 * block, starts + 2 * block, scales + 2 * block);
  }
};
inline Nvfp4Token nvfp4_token(const std::byte* x, std::int64_t cols) {
  const Nvfp4Layout at(cols);
  return {part<std::int8_t>(x), part<std::int8_t>(x, at.odd()), part<std::int32_t>(x, at.starts()),
          part<float>(x, at.scales())};
}

struct Nvfp4Rows {
  static constexpr std::size_t kRows = 2;
  const Matrix& m;
  float scale;  // of the whole product
  std::int64_t ahead = ask_ahead_bytes().slow;

  // One vector of codes of each row, from block b on, with these blocks' scales.
  template <std::size_t R, std::size_t T>
  CULPRIT_INLINE static void add_lanes(const std::uint8_t* const* codes, const Bf16* const* scales,
                                       const Nvfp4Token (&x)[T], std::int64_t b, F (&acc)[R][T]) {
    Codes w[R];
    F w_scales[R];
    CULPRIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      w[r] = decode(codes[r]);
      w_scales[r] = load_twice(scales[r]);
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) {
      const TokenLanes token = x[t].lanes_from(b);
      CULPRIT_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const F products = to_float(lab::dot(w[r], token));
        acc[r][t] = fma(products, mul(w_scales[r], token.scales), acc[r][t]);
      }
    }
  }

  // BF16 holds E4M3 exactly. `count` scales, and zeros behind them.
  CULPRIT_INLINE static void decode_scales(const std::byte* scales, std::int64_t count,
                                           Bf16* decoded) {
    if (count == kScalesAtOnce)
      return to_bf16_64(reinterpret_cast<const std::uint8_t*>(scales), decoded);
    std::uint8_t some[kScalesAtOnce] = {};
    std::memcpy(some, scales, static_cast<std::size_t>(count));
    to_bf16_64(some, decoded);
  }

  template <std::size_t R, std::size_t T>
  void dot(std::int64_t row, std::int64_t step, const std::byte* const* x, float (*out)[T]) const {
    const std::int64_t blocks = m.cols / kNvfp4Block;
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(m.data) + row * blocks * 8;
    Nvfp4Token tokens[T];
    for (std::size_t t = 0; t < T; ++t) tokens[t] = nvfp4_token(x[t], m.cols);
    F acc[R][T], none[R][T];
    clear<R, T>(acc);
    clear<R, T>(none);
    Bf16 decoded[R][kScalesAtOnce];
    const std::uint8_t* w[R];
    const Bf16* scales[R];
    for (std::int64_t first = 0; first < blocks; first += kScalesAtOnce) {
      const std::int64_t end = least(first + kScalesAtOnce, blocks);
      CULPRIT_UNROLL
      for (std::size_t r = 0; r < R; ++r)
        decode_scales(m.block_scales + (row + signed_of(r) * step) * blocks + first, end - first,
                      decoded[r]);
      std::int64_t b = first;
      for (; b + kLaneBlocks <= end; b += kLaneBlocks) {
        CULPRIT_UNROLL
        for (std::size_t r = 0; r < R; ++r) {
          w[r] = codes + (signed_of(r) * step * blocks + b) * 8;
          scales[r] = decoded[r] + (b - first);
          ask_ahead(w[r], ahead);
        }
        add_lanes<R, T>(w, scales, tokens, b, acc);
      }
      if (b == end) continue;
      std::uint8_t rest[R][kCodeBytes] = {};
      for (std::size_t r = 0; r < R; ++r) {
        std::memcpy(rest[r], codes + (signed_of(r) * step * blocks + b) * 8,
                    static_cast<std::size_t>((end - b) * 8));
        w[r] = rest[r];
        scales[r] = decoded[r] + (b - first);
      }
      add_lanes<R, T>(w, scales, tokens, b, acc);
    }
    finish_sums<R, T>(acc, none, scale, out);
  }
};

void nvfp4_block_dots(const Matrix& weights, std::int64_t row, const Batch& x, std::int64_t token,
                      std::int32_t* dots) {
  const std::int64_t blocks = weights.cols / kNvfp4Block;
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(weights.data) + row * blocks * 8;
  for (std::int64_t b = 0; b < blocks; b += kLaneBlocks) {
    std::uint8_t some[kCodeBytes] = {};
    const std::int64_t count = least(kLaneBlocks, blocks - b);
    std::memcpy(some, codes + b * 8, static_cast<std::size_t>(count * 8));
    const TokenLanes lanes = nvfp4_token(x.token(token), weights.cols).lanes_from(b);
    std::int32_t sums[W];
    store(sums, dot(decode(some), lanes));
    for (std::int64_t i = 0; i < count; ++i) dots[b + i] = sums[2 * i] + sums[2 * i + 1];
  }
}

}  // namespace
}  // namespace culprit::lab
