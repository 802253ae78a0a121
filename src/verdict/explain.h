// Explain: everything that is known about a suspect's kernels, or those that an expression finds: how
// long their calls take, every operator chain, line and launch behind them, and every tensor of the
// model that they were held against. O(activities) per kernel explained.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "verdict/verdict.h"

namespace culprit::verdict {

// One place that a kernel's calls come from.
struct Parent {
  std::string what;  // "aten::to > aten::_to_copy > aten::copy_", "backend.py:639 forward", "..."
  std::int64_t calls = 0;  // in the used steps
  Nanos ns = 0;            // device time of these calls
};

struct HeldTensor {
  known::Tensor tensor;
  bool fits = false;    // the kernel's elements leave room for it
  std::string because;  // the number that decides
};

struct Explained {
  std::size_t kernel = 0;                      // index into Evidence::kernels
  Nanos fastest = 0, median = 0, slowest = 0;  // of one call
  std::vector<Parent> ops, sources, launches;  // most time first
  std::vector<HeldTensor> tensors;             // what fits first; empty without a model
  std::vector<std::string> accused_of;         // ids of the suspects that cite it
};

struct Explanation {
  const Suspect* suspect = nullptr;  // where one was asked for
  std::vector<Explained> kernels;    // most time first
};

struct ExplainRequest {
  std::string kernel;   // a regular expression; empty: not given
  std::string suspect;  // an id; empty: not given
};

// kUsage: an expression that is broken or finds nothing, a suspect that is not in the verdict.
Result<Explanation> explain(const evidence::Evidence& evidence, const Verdict& verdict,
                            const ExplainRequest& request);

}  // namespace culprit::verdict
