#include "lab/kernels/simd/common.h"

#if defined(__aarch64__)
#include "lab/kernels/simd/neon.h"
#include "lab/kernels/simd/table.h"

namespace culprit::lab {

const Kernels& neon_kernels() { return kTable; }

}  // namespace culprit::lab
#endif
