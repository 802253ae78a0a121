// What one step works on, and what its parts share: rows are tokens of any requests, in their
// requests' order; those of one request stand together, positions ascending.
#pragma once

#include <algorithm>
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

// The rows of a step where the stream reads them, with what the host must know of them to launch.
class StepRows {
 public:
  StepRows() = default;
  // `rows` are the host's, `on_device` where they are copied to.
  StepRows(std::span<const StepRow> rows, const StepRow* on_device)
      : rows_(on_device), tokens_(static_cast<std::int64_t>(rows.size())) {
    for (const StepRow& row : rows) {
      wanted_ += row.logits ? 1 : 0;
      furthest_ = std::max(furthest_, row.position);
    }
  }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t wanted() const { return wanted_; }                       // that want logits
  std::int64_t furthest() const { return furthest_; }                   // position
  const StepRow& operator[](std::int64_t t) const { return rows_[t]; }  // on the stream

 private:
  const StepRow* rows_ = nullptr;
  std::int64_t tokens_ = 0, wanted_ = 0, furthest_ = 0;
};

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
