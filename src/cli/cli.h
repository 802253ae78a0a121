// The command line: argv in, exit code out. The only place that knows the process's streams,
// signals and exit codes:
//   0 answered · 1 a gate the user set has failed · 2 not answered · 130 interrupted
// Only the answer goes to stdout; exit 2 always has a message on stderr.
#pragma once

#include <cstdio>
#include <span>
#include <string_view>

#include "base/command_line.h"

namespace culprit::cli {

// What `main` adds: tools that share the program but not the code, and where the program comes from.
struct Beside {
  // Hands on the arguments behind its name; returns an exit code of the list above.
  struct Tool {
    int (*main)(std::span<const std::string_view> args, std::FILE* out, std::FILE* err) = nullptr;
    CommandLine (*describe)() = nullptr;
  };
  Tool forge = {}, lab = {};
  std::string_view commit =
      {};  // "1f0c2ab34d56", with "-dirty" where files were changed; may be empty
  std::string_view date = {};  // of the commit: "December 1, 2026"
};

int main(int argc, char** argv, const Beside& beside = {});

}  // namespace culprit::cli
