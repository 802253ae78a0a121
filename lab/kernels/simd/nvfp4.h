// NVFP4 weights times NVFP4 activations: the sum of a block's 16 products of doubled codes is a whole
// number, exact on every target; the scales, and the adding up of blocks, are in float. Each lane
// holds half a block, and its scale is the block's.
#pragma once

#include "lab/kernels/simd/linear.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kCodeBytes = 4 * W, kLaneBlocks = W / 2;  // of one vector of codes

// What a prepared token holds, from a lane on.
struct Nvfp4Token {
  const std::int8_t *even, *odd;
  const std::int32_t* starts;
  const float* scales;
};
inline Nvfp4Token token_at(const std::byte* x, const Nvfp4Layout& at, std::int64_t lane) {
  return {part<std::int8_t>(x) + 4 * lane, part<std::int8_t>(x, at.odd()) + 4 * lane,
          part<std::int32_t>(x, at.starts()) + lane, part<float>(x, at.scales()) + lane};
}

struct Nvfp4Rows {
  const Matrix& m;
  Nvfp4Layout at;
  float scale;  // of the whole product

  template <std::size_t T>
  static void add_lanes(const std::uint8_t* codes, const std::uint8_t* scales,
                        const std::byte* const* x, const Nvfp4Layout& at, std::int64_t lane,
                        F (&acc)[T]) {
    const Codes w = decode(codes);
    const F w_scales = scales_by_two(scales);
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) {
      const Nvfp4Token token = token_at(x[t], at, lane);
      const F products = to_float(lab::dot(w, token.even, token.odd, token.starts));
      acc[t] = fma(products, mul(w_scales, load(token.scales)), acc[t]);
    }
  }

  template <std::size_t T>
  void dot(std::int64_t row, const std::byte* const* x, float* out) const {
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(m.data) + row * (m.cols / 2);
    const std::int64_t blocks = m.cols / kNvfp4Block, whole = blocks / kLaneBlocks * kLaneBlocks;
    const auto* const scales = reinterpret_cast<const std::uint8_t*>(m.block_scales) + row * blocks;
    F acc[T];
    CULPRIT_UNROLL
    for (F& a : acc) a = zero();
    for (std::int64_t b = 0; b < whole; b += kLaneBlocks) {
      ask_ahead(reinterpret_cast<const std::byte*>(codes + b * 8));
      add_lanes<T>(codes + b * 8, scales + b, x, at, b * 2, acc);
    }
    if (whole < blocks) {
      std::uint8_t last_codes[kCodeBytes] = {}, last_scales[kLaneBlocks] = {};
      std::memcpy(last_codes, codes + whole * 8, static_cast<std::size_t>((blocks - whole) * 8));
      std::memcpy(last_scales, scales + whole, static_cast<std::size_t>(blocks - whole));
      add_lanes<T>(last_codes, last_scales, x, at, whole * 2, acc);
    }
    CULPRIT_UNROLL
    for (std::size_t t = 0; t < T; ++t) out[t] = sum(acc[t]) * scale;
  }
};

void nvfp4_block_dots(const Matrix& weights, std::int64_t row, const Batch& x, std::int64_t token,
                      std::int32_t* dots) {
  const Nvfp4Layout at(weights.cols);
  const std::int64_t blocks = weights.cols / kNvfp4Block;
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(weights.data) + row * blocks * 8;
  for (std::int64_t b = 0; b < blocks; b += kLaneBlocks) {
    std::uint8_t some[kCodeBytes] = {};
    const std::int64_t count = least(kLaneBlocks, blocks - b);
    std::memcpy(some, codes + b * 8, static_cast<std::size_t>(count * 8));
    const Nvfp4Token t = token_at(x.token(token), at, b * 2);
    std::int32_t lanes_of[W];
    store(lanes_of, dot(decode(some), t.even, t.odd, t.starts));
    for (std::int64_t i = 0; i < count; ++i) dots[b + i] = lanes_of[2 * i] + lanes_of[2 * i + 1];
  }
}

}  // namespace
}  // namespace culprit::lab
