// KernelInfo: what the (demangled) name of a device kernel tells by itself: kind, family, element
// types, work per block. Source of each rule: facts on kernel forensics (PyTorch ATen sources by
// era, vendor libraries). A name alone never proves what tensor was touched. Cost: one pass over a
// table of rules; callers decode each distinct name once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "known/dtype.h"
#include "known/owner.h"

namespace culprit::known {

enum class GridRule : std::uint8_t {
  kNone,          // capped, persistent or grid-stride: not invertible
  kLinear,        // elements in ((grid.x - 1) * work_per_block, grid.x * work_per_block]
  kRowsPerBlock,  // grid.x = number of rows, exactly (gather, norms, long softmax)
};

struct KernelInfo {
  Owner kind = Owner::kOtherKernel;
  // "unrolled_elementwise_kernel copy -> bf16"; at most 60 columns, no template noise.
  std::string short_name;
  // "aten-elementwise", "cublas", "cutlass", "flashinfer", "triton", "nccl", ...
  std::string family;

  // What it writes. ATen copy lambdas name the DESTINATION type.
  Dtype dtype_out = Dtype::kUnknown;
  // What it reads, only where the name really tells. Of a GEMM: its narrowest operand.
  Dtype dtype_in = Dtype::kUnknown;
  bool is_copy = false;  // an ATen copy functor: cast or layout copy
  // Rows picked by an index: an embedding lookup or a gather from a pool; only the op tells which.
  bool is_gather = false;
  // LoadWithCast / gpu_kernel_impl<direct_copy...>: the input type differs from the functor's.
  bool casts = false;
  // false: strided (elementwise_kernel<128,4> under gpu_kernel_impl[_nocast]).
  bool contiguous = true;

  GridRule grid_rule = GridRule::kNone;
  // The name's nt; block.x must agree, else the rule does not hold. 0: not told.
  int threads_per_block = 0;
  std::int64_t work_per_block = 0;  // W: elements per block of threads_per_block
  // > 0: nt is no template argument but a constant of the build (CUDA 128, ROCm 256, CUDA in 2021
  // 64). A recorded block.x replaces threads_per_block, and W = block.x x work_per_thread.
  int work_per_thread = 0;
};

// Kernel names as Kineto, ROCm and Nsight print them. Names longer than 64 KiB are cut before
// decoding.
KernelInfo decode_kernel(std::string_view name);
// Copies and sets recorded as gpu_memcpy / gpu_memset, by name: "Memcpy DtoH (Device -> Pageable)".
struct CopyInfo {
  enum class Direction : std::uint8_t {
    kUnknown,
    kHtoD,
    kDtoH,
    kDtoD,
    kPtoP
  } direction = Direction::kUnknown;
  bool pageable = false;  // a synchronous copy
};
CopyInfo decode_copy(std::string_view name);

}  // namespace culprit::known
