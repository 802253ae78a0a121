// Finding and opening the module that links MPI, when more than one rank is asked for. Without it, and
// without MPI, the tool runs as ever: on one rank.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "ranks/ranks.h"

namespace culprit {

// The module's file: beside the program, or in the library folder that it was installed with.
Result<std::string> find_mpi_module();
// Joins the run. Errors say what to install.
Result<std::unique_ptr<Ranks>> open_mpi(const std::string& module);

}  // namespace culprit
