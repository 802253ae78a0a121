// Element types in the names of library kernels: GEMMs, collectives, attention, KV stores.
#pragma once

#include "known/kernel_name.h"
#include "known/kernel_text.h"

namespace culprit::known {

// Fills dtype_in and dtype_out where the name of a kernel of info.family tells them.
void decode_dtypes(const KernelText& text, KernelInfo& info);

}  // namespace culprit::known
