// What one step works on, and what its parts share: rows are tokens of any requests, in their
// requests' order; those of one request stand together, positions ascending.
#pragma once

#include <cstdint>
#include <span>

#include "lab/engine/linear.h"
#include "lab/engine/pool.h"
#include "lab/engine/rope.h"

namespace culprit::lab {

struct StepRow {
  std::int32_t token = 0;
  std::int64_t position = 0;
  const std::int32_t* slots = nullptr;  // the request's page table; those up to `position` are set
  bool logits = false;                  // the token after it is wanted
};
using StepRows = std::span<const StepRow>;

struct StepLimits {
  std::int64_t rows = 0;      // in a step
  std::int64_t logits = 0;    // rows of it that want them
  std::int64_t requests = 0;  // with rows in it
  std::int64_t longest = 0;   // tokens of a request
};

// The tools of a step, made once.
struct Tools {
  const Kernels& kernels;
  Launcher& launch;
  Linear linear;
};

}  // namespace culprit::lab
