// Every kernel of an instruction set, held against kReference: many shapes, tails, misalignments and
// special values, the same ones on every machine. An error is |got - want| over the sum of the
// magnitudes of what was added up (for a sum that is what rounding is measured against: its value may
// be anything near zero); kernels that must agree bit for bit have tolerance 0, and their error is
// the share of numbers that do not. Each tolerance stands beside its check with its reason.
#pragma once

#include <string>
#include <vector>

#include "lab/kernels/isa.h"

namespace culprit::lab {

struct KernelCheck {
  std::string kernel, format;  // "linear", "bf16"
  double worst = 0, tolerance = 0;
  std::int64_t numbers = 0;  // compared
  bool ok() const { return numbers > 0 && worst <= tolerance; }
};

// About a second; no threads.
std::vector<KernelCheck> check_kernels(Isa isa);

}  // namespace culprit::lab
