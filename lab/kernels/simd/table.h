// The target's table: included last.
#pragma once

#include "lab/kernels/simd/attention.h"
#include "lab/kernels/simd/blocks.h"
#include "lab/kernels/simd/linear.h"
#include "lab/kernels/simd/nvfp4.h"
#include "lab/kernels/simd/rows.h"

namespace culprit::lab {
namespace {

void linear(const Matrix& w, const Batch& x, std::int64_t begin, std::int64_t end, float* y,
            std::int64_t y_stride) {
  switch (w.format) {
    case Format::kF32:
      return each_row(WideRows<WideF32>{w}, x, begin, end, y, y_stride);
    case Format::kF16:
      return each_row(WideRows<WideF16>{w}, x, begin, end, y, y_stride);
    case Format::kBf16:
      if (w.block_scales == nullptr)
        return each_row(PairRows<Bf16, false>{w, 1}, x, begin, end, y, y_stride);
      return each_row(PairRows<Bf16, true>{w, 1}, x, begin, end, y, y_stride);
    case Format::kE4m3:
      if (w.block_scales == nullptr)
        return each_row(PairRows<std::uint8_t, false>{w, kPairsE4m3Unit}, x, begin, end, y,
                        y_stride);
      return each_row(PairRows<std::uint8_t, true>{w, kPairsE4m3Unit}, x, begin, end, y, y_stride);
    case Format::kNvfp4:
      if (x.kind == Activations::kFloat)
        return each_row(WideNvfp4Rows{w}, x, begin, end, y, y_stride);
      return each_row(Nvfp4Rows{w, w.scale * x.input_scale * 0.25F}, x, begin, end, y,
                      y_stride);  // both sides' codes were doubled
    case Format::kQ8_0:
      return each_row(BlockRows<Q8Kind>{w}, x, begin, end, y, y_stride);
    case Format::kQ4_K:
      return each_row(BlockRows<Q4Kind>{w}, x, begin, end, y, y_stride);
    case Format::kQ6_K:
      return each_row(BlockRows<Q6Kind>{w}, x, begin, end, y, y_stride);
    case Format::kGgmlMxfp4:
      return each_row(BlockRows<Mxfp4Kind>{w}, x, begin, end, y, y_stride);
    case Format::kGgmlNvfp4:
      return each_row(BlockRows<Nvfp4Kind>{w}, x, begin, end, y, y_stride);
  }
}

constexpr Kernels kTable{prepare,      linear,     nvfp4_block_dots, rms_norm,     layer_norm,
                         rope,         silu_mul,   softmax,          add_scaled,   to_bf16,
                         from_bf16,    to_e4m3,    from_e4m3,        cast_pool,    gather_cast,
                         attend,       merge,      finish,           index_scores, read_memory,
                         write_memory, copy_memory};

}  // namespace
}  // namespace culprit::lab
