// The slow truth: every kernel as its formula reads, in double precision, one number at a time. The
// only table that allocates.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lab/kernels/kernels.h"
#include "lab/kernels/prepared.h"
#include "lab/kernels/tables.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

float single(double x) { return static_cast<float>(x); }

template <class T>
T read_as(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// ---- activations -----------------------------------------------------------------------------------
void prepare_nvfp4(const float* x, std::int64_t cols, float input_scale, std::byte* prepared) {
  const Nvfp4Layout at(cols);
  for (std::int64_t i = 0; i < cols; i += kNvfp4Block) {
    std::uint8_t codes[8], scale;
    quantize_activations({x + i, 16}, input_scale, codes, &scale);
    for (std::int64_t j = 0; j < 8; ++j) {
      const int even = doubled_e2m1(codes[j]), odd = doubled_e2m1(codes[j] >> 4);
      part<std::int8_t>(prepared)[i / 2 + j] = static_cast<std::int8_t>(even);
      part<std::int8_t>(prepared, at.odd())[i / 2 + j] = static_cast<std::int8_t>(odd);
      part<std::int32_t>(prepared, at.starts())[i / 8 + j / 4] -= Nvfp4Layout::kBias * (even + odd);
      part<float>(prepared, at.scales())[i / 8 + j / 4] = from_e4m3(scale);
    }
  }
}

void prepare_int8(const float* x, std::int64_t cols, std::int64_t block, std::byte* prepared) {
  const Int8Layout at(cols, block);
  for (std::int64_t i = 0; i < cols; i += block) {
    float largest = 0;
    for (std::int64_t j = i; j < i + block; ++j) largest = std::max(largest, std::fabs(x[j]));
    part<float>(prepared, at.scales())[i / block] = largest / 127;
    for (std::int64_t j = i; j < i + block; ++j) {
      const float whole = largest > 0x1p-100F ? std::nearbyint(x[j] * (127 / largest)) : 0;
      part<std::int8_t>(prepared)[j] = static_cast<std::int8_t>(whole);
      part<std::int32_t>(prepared, at.sums())[j / 32] += static_cast<std::int32_t>(whole);
    }
  }
}

void prepare(Activations kind, const float* x, std::int64_t cols, float input_scale,
             std::byte* prepared) {
  std::memset(prepared, 0, static_cast<std::size_t>(prepared_bytes(kind, cols)));
  switch (kind) {
    case Activations::kFloat:
      std::copy_n(x, cols, part<float>(prepared));
      return;
    case Activations::kBf16:
      for (std::int64_t i = 0; i < cols; ++i) part<Bf16>(prepared)[i] = to_bf16(x[i]);
      return;
    case Activations::kNvfp4:
      return prepare_nvfp4(x, cols, input_scale, prepared);
    case Activations::kInt8By32:
      return prepare_int8(x, cols, 32, prepared);
    case Activations::kInt8By256:
      return prepare_int8(x, cols, 256, prepared);
  }
}

// ---- linear layers ---------------------------------------------------------------------------------
void linear(const Matrix& weights, const Batch& x, std::int64_t begin, std::int64_t end, float* y,
            std::int64_t y_stride) {
  std::vector<float> row(static_cast<std::size_t>(weights.cols));
  for (std::int64_t r = begin; r < end; ++r) {
    dequantize_row(weights, r, row.data());
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      double total = 0;
      for (std::int64_t i = 0; i < weights.cols; ++i) total += wide(row.data()[i]) * x.number(t, i);
      y[t * y_stride + r] = single(total);
    }
  }
}

void nvfp4_block_dots(const Matrix& weights, std::int64_t row, const Batch& x, std::int64_t token,
                      std::int32_t* dots) {
  const std::byte* const codes = weights.data + row * weights.cols / 2;
  const std::byte* const planes = x.token(token);
  const std::int64_t odd = Nvfp4Layout(weights.cols).odd();
  for (std::int64_t b = 0; b < weights.cols / kNvfp4Block; ++b) {
    dots[b] = 0;
    for (std::int64_t i = b * 8; i < b * 8 + 8; ++i) {
      const auto code = static_cast<std::uint8_t>(codes[i]);
      dots[b] += doubled_e2m1(code) * part<std::int8_t>(planes)[i];
      dots[b] += doubled_e2m1(code >> 4) * part<std::int8_t>(planes, odd)[i];
    }
  }
}

// ---- rows ------------------------------------------------------------------------------------------
void layer_norm(const float* x, const float* gain, const float* bias, float eps, std::int64_t n,
                float* out) {
  double mean = 0, variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += wide(x[i]) / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i)
    variance += (wide(x[i]) - mean) * (wide(x[i]) - mean) / static_cast<double>(n);
  const double scale = 1 / std::sqrt(variance + wide(eps));
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = single((wide(x[i]) - mean) * scale * wide(gain[i]) + wide(bias[i]));
}

void rms_norm(const float* x, const float* gain, float eps, std::int64_t n, float* out) {
  double square = 0;
  for (std::int64_t i = 0; i < n; ++i) square += wide(x[i]) * wide(x[i]) / static_cast<double>(n);
  const double scale = 1 / std::sqrt(square + wide(eps));
  for (std::int64_t i = 0; i < n; ++i) out[i] = single(wide(x[i]) * scale * wide(gain[i]));
}

void rope(float* x, const float* cos, const float* sin, std::int64_t n, bool half_split) {
  for (std::int64_t i = 0; i < n / 2; ++i) {
    float& a = half_split ? x[i] : x[2 * i];
    float& b = half_split ? x[n / 2 + i] : x[2 * i + 1];
    const double first = wide(a) * wide(cos[i]) - wide(b) * wide(sin[i]);
    const double second = wide(a) * wide(sin[i]) + wide(b) * wide(cos[i]);
    a = single(first);
    b = single(second);
  }
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = single(wide(gate[i]) / (1 + std::exp(-wide(gate[i]))) * wide(up[i]));
}

void softmax(const float* x, std::int64_t n, float* out) {
  if (n == 0) return;
  const double top = wide(*std::max_element(x, x + n));
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += std::exp(wide(x[i]) - top);
  for (std::int64_t i = 0; i < n; ++i) out[i] = single(std::exp(wide(x[i]) - top) / total);
}

void add_scaled(const float* x, float scale, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = single(wide(sum[i]) + wide(scale) * wide(x[i]));
}

// ---- casts -----------------------------------------------------------------------------------------
void cast_to_bf16(const float* x, std::int64_t n, Bf16* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_bf16(x[i]);
}
void cast_from_bf16(const Bf16* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = from_bf16(x[i]);
}
void cast_to_e4m3(const float* x, std::int64_t n, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_e4m3(x[i]);
}
void cast_from_e4m3(const std::uint8_t* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = from_e4m3(x[i]);
}
void cast_pool(const std::uint8_t* e4m3, std::int64_t n, Bf16* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_bf16(from_e4m3(e4m3[i]));
}

// ---- the KV pool -----------------------------------------------------------------------------------
const std::byte* row_at(const KvRows& rows, std::int64_t i) {
  return rows.data + (rows.index != nullptr ? rows.index[i] : i) * rows.stride;
}

double number_at(const KvRows& rows, std::int64_t i, std::int64_t column) {
  const std::byte* const row = row_at(rows, i);
  return rows.format == KvFormat::kE4m3 ? wide(from_e4m3(read_as<std::uint8_t>(row + column)))
                                        : wide(from_bf16(read_as<Bf16>(row + 2 * column)));
}

double row_scale(const KvRows& rows, std::int64_t i) {
  return rows.scale_at < 0 ? 1 : wide(read_as<float>(row_at(rows, i) + rows.scale_at));
}

void gather_cast(const KvRows& rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                 Bf16* out) {
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t c = 0; c < width; ++c) *out++ = to_bf16(single(number_at(rows, i, c)));
}

double score(const Query& query, std::int64_t head, const KvRows& keys, std::int64_t i) {
  double total = 0;
  for (std::int64_t c = 0; c < query.width; ++c)
    total += wide(query.q[head * query.width + c]) * number_at(keys, i, c);
  return total * row_scale(keys, i) * wide(query.scale);
}

void attend(const Query& query, const KvRows& keys, const KvRows& values, std::int64_t begin,
            std::int64_t end, Partial partial) {
  std::vector<double> scores, out(static_cast<std::size_t>(query.value_width));
  for (std::int64_t h = 0; h < query.heads; ++h) {
    scores.clear();
    for (std::int64_t i = begin; i < end; ++i) scores.push_back(score(query, h, keys, i));
    double top = -HUGE_VAL, total = 0;
    for (const double s : scores) top = std::max(top, s);
    std::fill(out.begin(), out.end(), 0);
    for (std::int64_t i = begin; i < end; ++i) {
      const double weight = std::exp(scores.data()[i - begin] - top);
      total += weight;
      for (std::int64_t c = 0; c < query.value_width; ++c)
        out.data()[c] += weight * row_scale(values, i) * number_at(values, i, c);
    }
    partial.max[h] = single(top);
    partial.sum[h] = single(total);
    for (std::int64_t c = 0; c < query.value_width; ++c)
      partial.out[h * query.value_width + c] = single(out.data()[c]);
  }
}

void merge(Partial into, Partial other, std::int64_t heads, std::int64_t value_width) {
  for (std::int64_t h = 0; h < heads; ++h) {
    const double top = wide(std::max(into.max[h], other.max[h]));
    if (std::isinf(top)) continue;  // neither had a position
    const double mine = std::exp(wide(into.max[h]) - top);
    const double theirs = std::exp(wide(other.max[h]) - top);
    into.max[h] = single(top);
    into.sum[h] = single(wide(into.sum[h]) * mine + wide(other.sum[h]) * theirs);
    for (std::int64_t c = h * value_width; c < (h + 1) * value_width; ++c)
      into.out[c] = single(wide(into.out[c]) * mine + wide(other.out[c]) * theirs);
  }
}

void finish(Partial partial, std::int64_t heads, std::int64_t value_width) {
  for (std::int64_t i = 0; i < heads * value_width; ++i)
    if (const float sum = partial.sum[i / value_width]; sum != 0) partial.out[i] /= sum;
}

void index_scores(const Query& query, const float* head_weight, const KvRows& keys,
                  std::int64_t begin, std::int64_t end, float* scores) {
  for (std::int64_t i = begin; i < end; ++i) {
    double total = 0;
    for (std::int64_t h = 0; h < query.heads; ++h)
      total += wide(head_weight[h]) * std::max(0.0, score(query, h, keys, i));
    scores[i - begin] = single(total);
  }
}

// ---- memory ----------------------------------------------------------------------------------------
std::uint64_t read_memory(const std::byte* p, std::int64_t n) {
  std::uint64_t total = 0;
  for (std::int64_t i = 0; i < n; i += 8) total ^= read_as<std::uint64_t>(p + i);
  return total;
}
void write_memory(std::byte* p, std::int64_t n) { std::fill_n(p, n, std::byte{1}); }
void copy_memory(const std::byte* from, std::int64_t n, std::byte* to) { std::copy_n(from, n, to); }

constexpr Kernels kTable{prepare,        linear,       nvfp4_block_dots, rms_norm,     layer_norm,
                         rope,           silu_mul,     softmax,          add_scaled,   cast_to_bf16,
                         cast_from_bf16, cast_to_e4m3, cast_from_e4m3,   cast_pool,    gather_cast,
                         attend,         merge,        finish,           index_scores, read_memory,
                         write_memory,   copy_memory};

}  // namespace

const Kernels& reference_kernels() { return kTable; }

}  // namespace culprit::lab
