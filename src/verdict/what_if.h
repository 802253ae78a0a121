// What if: the step run again with a change that the user asks for. Errors: a name that fits neither a
// suspect nor a kernel, a broken expression, a run that cannot be retimed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "verdict/verdict.h"

namespace culprit::verdict {

struct WhatIf {
  std::vector<std::string> remove;  // suspect ids, or expressions over kernel names
  std::vector<std::pair<std::string, double>> scale;  // expression, factor on the kernels' time
  bool graph = false;                                 // one launch per step
  bool no_sync = false;  // calls that wait for the device return at once
  bool empty() const { return remove.empty() && scale.empty() && !graph && !no_sync; }
};

struct WhatIfAnswer {
  std::vector<std::string> changes;  // what was changed, a sentence each
  Gain gain;
  evidence::Retimed now, after;  // of the window of steps that was retimed
};

Result<WhatIfAnswer> what_if(const evidence::Evidence& evidence, const Verdict& verdict,
                             const WhatIf& request);

}  // namespace culprit::verdict
