#include "lab/kernels/kernels.h"

#include "lab/kernels/tables.h"

namespace culprit::lab {

const Kernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return reference_kernels();
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2_kernels();
    case Isa::kAvx512:
      return avx512_kernels();
#elif defined(__aarch64__)
    case Isa::kNeon:
      return neon_kernels();
#endif
    default:
      return portable_kernels();
  }
}

}  // namespace culprit::lab
