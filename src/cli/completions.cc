#include "cli/completions.h"

namespace culprit::cli {
namespace {

void add_all(const std::string& words, const CommandLine& command,
             std::vector<std::pair<std::string, const CommandLine*>>& all) {
  all.emplace_back(words, &command);
  for (const CommandLine& inner : command.commands) add_all(words + " " + inner.name, inner, all);
}

}  // namespace

std::vector<std::pair<std::string, const CommandLine*>> all_commands(const CommandLine& program) {
  std::vector<std::pair<std::string, const CommandLine*>> all;
  add_all(program.name, program, all);
  return all;
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string completions(std::string_view shell, const CommandLine& program) {
  return shell == "zsh"    ? zsh_completions(program)
         : shell == "fish" ? fish_completions(program)
                           : bash_completions(program);
}

}  // namespace culprit::cli
