// The whole command line of the program as data: the tables of commands and flags, and what stands
// beside them.
#pragma once

#include "base/command_line.h"
#include "cli/cli.h"

namespace culprit::cli {

// The program itself has the flags and operands of the command that need not be named (diagnose).
CommandLine describe(const Beside& beside);

}  // namespace culprit::cli
