// Call sites: does the order in which a capture launched kernels that it does not name fit the
// kernels that a replay ran? A call site (call, operator, frames, and its neighbours in the script)
// occurs once per layer, and launches the same kernel each time; a launch too few or too many
// shifts the kernels under the sites behind it, and they disagree. Internal to mapping.
#pragma once

#include <string>
#include <vector>

#include "run/align.h"
#include "run/run.h"

namespace culprit::run {

struct CallSites {
  std::vector<std::uint8_t> holds;  // by place: 1 where the pair is borne out; empty: none is
  std::string why_not;              // why places are left out
};

// `activities` of one replay, held place by place against the script's launches; `symbols`: their
// kernels.
CallSites check_call_sites(const Run& run, const std::vector<std::uint32_t>& activities,
                           const Run& lender, const Script& script, const Symbols& symbols);

}  // namespace culprit::run
