#include "lab/kernels/simd/common.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own "undefined" vectors
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#include "lab/kernels/simd/avx2.h"
#include "lab/kernels/simd/table.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace culprit::lab {

const Kernels& avx2_kernels() { return kTable; }

}  // namespace culprit::lab
#endif
