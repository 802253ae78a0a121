// `culprit forge`: writes a trace of a described run, with a fault planted in it or without.
// A front end: it may write to the streams it is given.
#pragma once

#include <cstdio>
#include <span>
#include <string_view>

#include "base/command_line.h"

namespace culprit::forge {

// Returns 0, or 2 for a usage error or a file it cannot write. `args` are those after "forge". A trace for "-o -" goes to `out`, everything for people
// to `err`.
// NOLINTNEXTLINE(bugprone-exception-escape): the check takes it for the program's main
int main(std::span<const std::string_view> args, std::FILE* out, std::FILE* err);
// Its recipes and flags, as data.
CommandLine describe();

}  // namespace culprit::forge
