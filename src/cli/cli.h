// The command line: argv in, exit code out. The only place that knows the process's streams,
// signals and exit codes:
//   0 answered · 1 a gate the user set has failed · 2 not answered · 130 interrupted
// Only the answer goes to stdout; exit 2 always has a message on stderr.
#pragma once

#include <cstdio>
#include <span>
#include <string_view>

namespace culprit::cli {

// Tools that share the program but not the code: `main` hands their arguments on. They return an
// exit code of the list above.
struct Beside {
  using Tool = int (*)(std::span<const std::string_view> args, std::FILE* out, std::FILE* err);
  Tool forge = nullptr, lab = nullptr;
};

int main(int argc, char** argv, const Beside& beside = {});

}  // namespace culprit::cli
