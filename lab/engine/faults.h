// Faults: what makes the steps of a server slow, to be switched on one by one. The engine then does
// that work for real: host time is spent by the host's thread, copies and casts move their bytes. Each
// is consulted in one place, costs nothing while it is off, and changes no token.
// Units: nanoseconds, rows, requests. The rows are the table behind --fault and `culprit lab faults`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/id.h"
#include "base/result.h"

namespace culprit::lab {

struct Faults {
  // The host's.
  Nanos host_delay = 0;          // its own work before each launch (Launcher)
  Nanos host_work = 0;           // its own work before each step (Engine)
  Nanos stall = 0;               // a pause before every kStallEvery-th step (Engine)
  bool sync_per_layer = false;   // it waits for the stream behind each layer (Forward)
  bool blocking_copy = false;    // it copies all logits to its own memory, and waits (Engine)
  std::int64_t graph_limit = 0;  // requests beyond which a step has no graph; 0: none (Engine)
  // The device's.
  bool single_block = false;      // one thread samples for all requests (Engine)
  bool head_per_request = false;  // the output matrix is read once per request (Forward)
  bool small_kernels = false;     // residual, norm, activation, rounding: a kernel each
  bool pool_copy = false;         // a layer's whole pool is copied before attention (Attention)
  bool layout_copy = false;       // the rows in use are copied in a row before it (Attention)
  bool dequantize = false;        // FP8 weights to BF16 in front of each use (Linear)
  std::int64_t grid_rows = 0;     // norms work on so many rows, whatever the step has (Forward)
};
inline constexpr std::int64_t kStallEvery = 12;  // steps

struct FaultRow {
  std::string_view name, what;
  bool Faults::*on = nullptr;  // one of the two
  std::int64_t Faults::*amount = nullptr;
  std::string_view unit = {};  // of the amount's value: "US", "N"
  std::int64_t per_unit = 1;
};
std::span<const FaultRow> fault_rows();

// Sets what "name" or "name=value" says. Errors: an unknown name (with the near one), a value that is
// missing, superfluous or none.
Status set_fault(std::string_view text, Faults& faults);
}  // namespace culprit::lab
