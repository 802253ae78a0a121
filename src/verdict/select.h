// Which kernels and suspects a word of the user means. Errors (kUsage) name near suspects and say how
// to list the kernels.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "verdict/verdict.h"

namespace culprit::verdict {

// Indices into Evidence::kernels, in their order, whose full or short name the regular expression
// finds; never empty.
Result<std::vector<std::size_t>> kernels_matching(const evidence::Evidence& evidence,
                                                  const Verdict& verdict,
                                                  const std::string& expression);
// Null where no suspect of the verdict has this id.
const Suspect* suspect_named(const Verdict& verdict, std::string_view id);

}  // namespace culprit::verdict
