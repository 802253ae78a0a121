// PyTorch's own elementwise, copy, index and reduce kernels: the functor inside their template
// arguments says what they do, the template integers how much of it one block does.
// Source: ATen CUDALoops.cuh, Loops.cuh, Copy.cu, IndexKernel.cu, Reduce.cuh, by era; the facts on
// eras were held against recorded dims on CUDA and ROCm traces of 2021 to 2025.
#pragma once

#include "known/kernel_name.h"
#include "known/kernel_text.h"

namespace culprit::known {

// Fills `info` and returns true if the kernel is one of these.
bool decode_aten(const KernelText& text, KernelInfo& info);

}  // namespace culprit::known
