// Completions: a script that teaches a shell the commands, their flags, the words that values may be,
// and where files go. Made from a CommandLine; the script asks nothing of the program when it runs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command_line.h"

namespace culprit::cli {

std::string bash_completions(const CommandLine& program);
std::string zsh_completions(const CommandLine& program);
std::string fish_completions(const CommandLine& program);
// `shell`: "bash", "zsh" or "fish".
std::string completions(std::string_view shell, const CommandLine& program);

// The program and its commands, each with its words: "culprit", "culprit lab", "culprit lab bench".
std::vector<std::pair<std::string, const CommandLine*>> all_commands(const CommandLine& program);
// In single quotes, as bash and zsh read them.
std::string single_quoted(std::string_view text);

}  // namespace culprit::cli
