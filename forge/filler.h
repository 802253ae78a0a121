// What a decode loop does on the host between two launches: frames and operators that launch
// nothing. They bring a trace to a size that was asked for.
// Invariant: a list is in pre-order; depths are relative to the first.
#pragma once

#include <vector>

#include "forge/run.h"

namespace culprit::forge {

struct FillerFrame {
  int depth = 0;
  Frame frame;
};

const std::vector<FillerFrame>& filler_frames();
const std::vector<Op>& filler_ops();

}  // namespace culprit::forge
