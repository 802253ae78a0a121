// Kernels over one row of numbers: norms, rotary positions, softmax, casts, and the preparing of
// activations. Written over the primitives of the target that includes this file. Whole vectors
// first; what is left goes through a vector's worth of zeros on the stack.
#pragma once

#include "lab/kernels/simd/common.h"

namespace culprit::lab {
namespace {

inline std::int64_t whole_vectors(std::int64_t n) { return n / W * W; }
inline std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// The `count` (less than W) numbers at p, and `rest` behind them.
template <class T>
inline F load_some(const T* p, std::int64_t count, T rest = T{}) {
  T buffer[W];
  for (T& x : buffer) x = rest;
  std::memcpy(buffer, p, static_cast<std::size_t>(count) * sizeof(T));
  return load(buffer);
}
template <class T>
inline void store_some(T* p, F a, std::int64_t count) {
  T buffer[W];
  store(buffer, a);
  std::memcpy(p, buffer, static_cast<std::size_t>(count) * sizeof(T));
}

// e^x to 2 ulp: 2^n x e^r with |r| <= ln 2 / 2, e^r by its series to r^7 (the next term is below
// 2^-27). Below -87.3 it is that of -87.3 (1.2e-38), above 88 that of 88; NaN stays.
inline F exp(F x) {
  constexpr float kSeries[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1, 1};
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  x = min(set1(88), max(set1(-87.3F), x));
  const F n = round_even(mul(x, set1(kLog2E)));
  const F r = fma(n, set1(-kLn2Low), fma(n, set1(-kLn2High), x));
  F e = set1(1.0F / 5040);
  CULPRIT_UNROLL
  for (const float c : kSeries) e = fma(e, r, set1(c));
  return mul(e, power_of_two(n));
}

inline F silu(F x) { return div(x, add(set1(1), exp(sub(zero(), x)))); }

// ---- norms -----------------------------------------------------------------------------------------
inline float sum_of(const float* x, std::int64_t n) {
  F total = zero();
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W) total = add(total, load(x + i));
  return sum(add(total, load_some(x + whole, n - whole)));
}

// Sum of (x - mean)^2, without the tail's zeros.
inline float sum_of_squares(const float* x, float mean, std::int64_t n) {
  F total = zero();
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W) {
    const F d = sub(load(x + i), set1(mean));
    total = fma(d, d, total);
  }
  const F d = sub(load_some(x + whole, n - whole, mean), set1(mean));
  return sum(fma(d, d, total));
}

void rms_norm(const float* x, const float* gain, float eps, std::int64_t n, float* out) {
  const F scale = set1(1 / std::sqrt(sum_of_squares(x, 0, n) / static_cast<float>(n) + eps));
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W)
    store(out + i, mul(mul(load(x + i), scale), load(gain + i)));
  const F rest = mul(load_some(x + whole, n - whole), scale);
  store_some(out + whole, mul(rest, load_some(gain + whole, n - whole)), n - whole);
}

void layer_norm(const float* x, const float* gain, const float* bias, float eps, std::int64_t n,
                float* out) {
  const auto count = static_cast<float>(n);
  const float mean = sum_of(x, n) / count;
  const F scale = set1(1 / std::sqrt(sum_of_squares(x, mean, n) / count + eps)), m = set1(mean);
  const std::int64_t whole = whole_vectors(n), left = n - whole;
  for (std::int64_t i = 0; i < whole; i += W)
    store(out + i, fma(mul(sub(load(x + i), m), scale), load(gain + i), load(bias + i)));
  const F rest = mul(sub(load_some(x + whole, left), m), scale);
  const F moved = fma(rest, load_some(gain + whole, left), load_some(bias + whole, left));
  store_some(out + whole, moved, left);
}

// ---- rotary positions ------------------------------------------------------------------------------
inline void rotate(F& a, F& b, F cos, F sin) {
  const F first = sub(mul(a, cos), mul(b, sin));
  b = add(mul(a, sin), mul(b, cos));
  a = first;
}

void rope(float* x, const float* cos, const float* sin, std::int64_t n, bool half_split) {
  const std::int64_t half = n / 2, whole = whole_vectors(half);
  for (std::int64_t i = 0; i < whole; i += W) {
    if (half_split) {
      F a = load(x + i), b = load(x + half + i);
      rotate(a, b, load(cos + i), load(sin + i));
      store(x + i, a);
      store(x + half + i, b);
    } else {
      F a, b, lo, hi;
      unzip(load(x + 2 * i), load(x + 2 * i + W), a, b);
      rotate(a, b, load(cos + i), load(sin + i));
      zip(a, b, lo, hi);
      store(x + 2 * i, lo);
      store(x + 2 * i + W, hi);
    }
  }
  for (std::int64_t i = whole; i < half; ++i) {
    float& a = half_split ? x[i] : x[2 * i];
    float& b = half_split ? x[half + i] : x[2 * i + 1];
    const float first = a * cos[i] - b * sin[i];
    b = a * sin[i] + b * cos[i];
    a = first;
  }
}

// ---- elementwise -----------------------------------------------------------------------------------
void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  const std::int64_t whole = whole_vectors(n), left = n - whole;
  for (std::int64_t i = 0; i < whole; i += W)
    store(out + i, mul(silu(load(gate + i)), load(up + i)));
  const F rest = silu(load_some(gate + whole, left));
  store_some(out + whole, mul(rest, load_some(up + whole, left)), left);
}

void add_scaled(const float* x, float scale, std::int64_t n, float* to) {
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W)
    store(to + i, fma(load(x + i), set1(scale), load(to + i)));
  for (std::int64_t i = whole; i < n; ++i) to[i] += scale * x[i];
}

inline void scale_by(float* x, float scale, std::int64_t n) {
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W) store(x + i, mul(load(x + i), set1(scale)));
  for (std::int64_t i = whole; i < n; ++i) x[i] *= scale;
}

inline float largest_of(const float* x, std::int64_t n) {
  const std::int64_t whole = whole_vectors(n);
  F top = set1(-INFINITY);
  for (std::int64_t i = 0; i < whole; i += W) top = max(load(x + i), top);
  if (whole < n) top = max(load_some(x + whole, n - whole, -INFINITY), top);
  return largest(top);
}

// out = e^(x - top); returns their sum.
inline float exp_and_sum(const float* x, float top, std::int64_t n, float* out) {
  const std::int64_t whole = whole_vectors(n);
  F total = zero();
  for (std::int64_t i = 0; i < whole; i += W) {
    const F e = exp(sub(load(x + i), set1(top)));
    store(out + i, e);
    total = add(total, e);
  }
  if (whole == n) return sum(total);
  float rest = 0, e[W];
  store(e, exp(sub(load_some(x + whole, n - whole, top), set1(top))));
  for (std::int64_t i = whole; i < n; ++i) rest += out[i] = e[i - whole];
  return sum(total) + rest;
}

void softmax(const float* x, std::int64_t n, float* out) {
  if (n == 0) return;
  const float total = exp_and_sum(x, largest_of(x, n), n, out);
  scale_by(out, 1 / total, n);
}

// ---- casts -----------------------------------------------------------------------------------------
template <class From, class To>
inline void cast(const From* x, std::int64_t n, To* out) {
  const std::int64_t whole = whole_vectors(n);
  for (std::int64_t i = 0; i < whole; i += W) store(out + i, load(x + i));
  if (whole < n) store_some(out + whole, load_some(x + whole, n - whole), n - whole);
}

inline void cast_row(const std::uint8_t* e4m3, std::int64_t n, Bf16* out) {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) to_bf16_64(e4m3 + i, out + i);
  cast(e4m3 + i, n - i, out + i);
}

void to_bf16(const float* x, std::int64_t n, Bf16* out) { cast(x, n, out); }
void from_bf16(const Bf16* x, std::int64_t n, float* out) { cast(x, n, out); }
void from_e4m3(const std::uint8_t* x, std::int64_t n, float* out) { cast(x, n, out); }
void to_e4m3(const float* x, std::int64_t n, std::uint8_t* out) {  // a row per token: no hurry
  for (std::int64_t i = 0; i < n; ++i) out[i] = lab::to_e4m3(x[i]);
}

// ---- activations -----------------------------------------------------------------------------------
// A NaN is passed over, as in number/fp4.h.
inline float largest_magnitude(const float* x, std::int64_t n) {
  const std::int64_t whole = whole_vectors(n);
  F top = zero();
  for (std::int64_t i = 0; i < whole; i += W) top = max(abs(load(x + i)), top);
  if (whole < n) top = max(abs(load_some(x + whole, n - whole)), top);
  return largest(top);
}

// The doubled value of to_e2m1(x): bounds and ties as there.
inline F doubled_e2m1_of(F x) {
  const F size = abs(x);
  F r = add(above(size, 0.25F, 1), at_least(size, 0.75F, 1));
  r = add(r, add(above(size, 1.25F, 1), at_least(size, 1.75F, 1)));
  r = add(r, add(above(size, 2.5F, 2), at_least(size, 3.5F, 2)));
  return with_sign_of(add(r, above(size, 5, 4)), x);
}

// to_e4m3 of magnitudes, as the number that it stands for: adding a power of two so large that the
// sum has room for three bits behind the number's first (or for the smallest subnormal) rounds it.
inline F nearest_e4m3(F x) {
  const F large = mul(max(power_of(x), set1(0x1p-6F)), set1(0x1p20F));
  return min(sub(add(x, large), large), set1(448));
}

// W blocks of 16 (or the last `count`), by number/fp4.h's formulas step by step.
inline void prepare_nvfp4_blocks(const float* x, float global, std::int64_t count,
                                 std::int8_t* even, std::int8_t* odd, float* scales) {
  float tops[W] = {}, steps[W];
  for (std::int64_t b = 0; b < count; ++b) tops[b] = largest_magnitude(x + 16 * b, 16);
  const F rounded = nearest_e4m3(div(mul(load(tops), set1(global)), set1(6)));
  store(tops, rounded);
  store(steps, div(rounded, set1(global)));
  for (std::int64_t b = 0; b < count; ++b) {
    scales[2 * b] = scales[2 * b + 1] = tops[b];
    if (tops[b] == 0) steps[b] = INFINITY;  // such a block's codes are 0
  }
  for (std::int64_t i = 0; i < 16 * count; i += 2 * W) {
    F a = doubled_e2m1_of(div(load(x + i), set1(steps[i / 16]))), b = zero();
    if (i + W < 16 * count)  // else the last of an odd number of blocks
      b = doubled_e2m1_of(div(load(x + i + W), set1(steps[(i + W) / 16])));
    unzip(a, b, a, b);
    store(even + i / 2, a);
    store(odd + i / 2, b);
  }
}

void prepare_nvfp4(const float* x, std::int64_t cols, float input_scale, std::byte* prepared) {
  const Nvfp4Layout at(cols);
  auto* const even = part<std::int8_t>(prepared);
  auto* const odd = part<std::int8_t>(prepared, at.odd());
  auto* const starts = part<std::int32_t>(prepared, at.starts());
  auto* const scales = part<float>(prepared, at.scales());
  for (std::int64_t i = 0; i < cols; i += 16 * W)
    prepare_nvfp4_blocks(x + i, 1 / input_scale, least(W, (cols - i) / 16), even + i / 2,
                         odd + i / 2, scales + i / 8);
  for (std::int64_t lane = 0; lane < cols / 8; ++lane) {
    std::int32_t total = 0;
    for (std::int64_t i = 4 * lane; i < 4 * lane + 4; ++i) total += even[i] + odd[i];
    starts[lane] = -Nvfp4Layout::kBias * total;
  }
}

inline void prepare_int8(const float* x, std::int64_t cols, std::int64_t block,
                         std::byte* prepared) {
  const Int8Layout at(cols, block);
  auto* const q = part<std::int8_t>(prepared);
  auto* const sums = part<std::int32_t>(prepared, at.sums());
  auto* const scales = part<float>(prepared, at.scales());
  for (std::int64_t i = 0; i < cols; i += block) {
    const float top = largest_magnitude(x + i, block);
    const F steps = set1(int8_steps(top));
    scales[i / block] = top / 127;
    for (std::int64_t j = 0; j < block; j += W)
      store(q + i + j, round_even(mul(load(x + i + j), steps)));
  }
  for (std::int64_t i = 0; i < cols; i += 32) {
    std::int32_t total = 0;
    for (std::int64_t j = 0; j < 32; ++j) total += q[i + j];
    sums[i / 32] = total;
  }
}

void prepare(Activations kind, const float* x, std::int64_t cols, float input_scale,
             std::byte* prepared) {
  std::memset(prepared, 0, static_cast<std::size_t>(prepared_bytes(kind, cols)));
  switch (kind) {
    case Activations::kFloat:
      std::memcpy(prepared, x, static_cast<std::size_t>(cols) * sizeof *x);
      return;
    case Activations::kBf16:
      return to_bf16(x, cols, part<Bf16>(prepared));
    case Activations::kInt8By32:
      return prepare_int8(x, cols, 32, prepared);
    case Activations::kInt8By256:
      return prepare_int8(x, cols, 256, prepared);
    case Activations::kNvfp4:
      return prepare_nvfp4(x, cols, input_scale, prepared);
  }
}

}  // namespace
}  // namespace culprit::lab
