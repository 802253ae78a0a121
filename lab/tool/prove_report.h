// What `lab prove` found, and how it is said: per pair what was named, what was predicted, what was
// measured. The error is (predicted - measured) / measured.
#pragma once

#include <string>
#include <vector>

#include "lab/tool/detective.h"
#include "lab/tool/pairs.h"

namespace culprit::lab {

struct Proof {
  const Pair* pair = nullptr;
  DrawnPair lines;
  Nanos recorded = 0, before = 0;  // the fault's step as the trace has it, and without a recorder
  Nanos predicted = 0, measured = 0;       // the step with the fix; predicted 0: nobody said
  int recordings = 0, tries = 0;           // taken until the machine was steady meanwhile
  std::string named, confidence;           // empty: nobody
  std::vector<std::string> accused_after;  // of whom the fixed run is accused, likely or certain
  bool named_right = false, healthy_after = false;

  double error() const;
  double drift() const;  // of the fault's step, from the recording to the measurement; a share
};

struct Summary {
  std::size_t runs = 0, named = 0, healthy = 0;
  double median = 0, worst = 0;  // of |error|
};
Summary summary_of(const std::vector<Proof>& proofs);

std::string proof_text(const Proof& proof);  // of one run
// The table of all.
std::string prove_text(const std::vector<Proof>& proofs, bool tiny);
std::string prove_json(const std::vector<Proof>& proofs, bool tiny);

}  // namespace culprit::lab
