// The tables behind decode_kernel: what a name's words say about a kernel's work and its origin.
// Knowledge is data: a new kernel is one word here and one line in the test.
#pragma once

#include <string_view>

#include "known/kernel_text.h"
#include "known/owner.h"

namespace culprit::known {

// First rule that matches wins; rules run from the specific to the general. kOtherKernel: none did,
// or the work is known to be none of the named kinds (convolutions, sorts).
Owner kind_of(const KernelText& text);
// The library a kernel comes from, "" where nothing says so.
std::string_view family_of(const KernelText& text);

}  // namespace culprit::known
