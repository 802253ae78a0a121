// Input: what is wrong with a path before anything is read, and what the user may have meant.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace culprit::cli {

// Ok for "-" and for anything that can be opened. kCannotRead for what does not exist, naming near
// files of that folder (or a near command); kUsage for a folder.
Status check_input(const std::string& path);
// The traces that `path` stands for: itself, or those in that folder besides captures, in the order of
// the numbers in their names.
Result<std::vector<std::string>> find_traces(const std::string& path);

// The same of a folder and all folders in it, but for those named `.something`, `except` (which need not
// exist) and what a link leads to. kUsage for what is no folder.
Result<std::vector<std::string>> find_traces_under(const std::string& folder,
                                                   const std::string& except);

}  // namespace culprit::cli
