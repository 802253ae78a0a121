#include "lab/kernels/simd/portable.h"

#include "lab/kernels/simd/table.h"

namespace culprit::lab {

const Kernels& portable_kernels() { return kTable; }

}  // namespace culprit::lab
