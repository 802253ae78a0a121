// `culprit lab`: the decode laboratory's commands. A front end: it may write to the streams it is
// given. The answer goes to `out`, everything else to `err`.
#pragma once

#include <cstdio>
#include <span>
#include <string_view>

#include "base/command_line.h"

namespace culprit::lab {

// Returns 0; 1 where a check missed; 2 for what was not answered. `args` are those after "lab".
// NOLINTNEXTLINE(bugprone-exception-escape): the check takes it for the program's main
int main(std::span<const std::string_view> args, std::FILE* out, std::FILE* err);
// Its commands and their flags, as data.
CommandLine describe();

}  // namespace culprit::lab
