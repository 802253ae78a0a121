// The tables of the instruction sets that this build knows; kernels.cc chooses among them.
#pragma once

#include "lab/kernels/kernels.h"

namespace culprit::lab {

const Kernels& reference_kernels();
const Kernels& portable_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#elif defined(__aarch64__)
const Kernels& neon_kernels();
#endif

}  // namespace culprit::lab
