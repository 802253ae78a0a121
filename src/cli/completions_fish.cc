// One `complete` line for each command and flag, under the condition that its command is meant.
#include <fmt/format.h>

#include "cli/completions.h"

namespace culprit::cli {
namespace {

// In single quotes, as fish reads them.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// Candidates of -a, which are expanded once more.
std::string candidates(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    out += out.empty() ? "" : " ";
    for (const char c : word) {
      if (std::string_view(" ()[]{}\\'\"$*?~#&|;<>").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return quoted(out);
}

std::string flag_line(const std::string& condition, const FlagLine& flag) {
  std::string out = "complete -c culprit -n " + condition;
  for (const std::string& name : flag.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!flag.value.empty() && !flag.may_lack_value) out += flag.words.files ? " -r -F" : " -x";
  if (!flag.words.known.empty()) out += " -a " + candidates(flag.words.known);
  return out + " -d " + quoted(flag.help) + "\n";
}

std::string lines_of(const std::string& words, const CommandLine& command) {
  const std::string at = words.substr(std::min(words.size(), words.find(' ') + 1));
  const bool program = words.find(' ') == std::string::npos;
  const std::string condition = quoted("__culprit_at " + (program ? "culprit" : quoted(at)));
  std::string out;
  for (const CommandLine& inner : command.commands)
    out += fmt::format("complete -c culprit -n {} -a {} -d {}\n",
                       quoted("__culprit_first " + (program ? "culprit" : quoted(at))), inner.name,
                       quoted(inner.summary));
  if (command.words.files) out += "complete -c culprit -n " + condition + " -F\n";
  if (!command.words.known.empty())
    out += "complete -c culprit -n " + condition + " -a " + candidates(command.words.known) + "\n";
  for (const FlagLine& flag : command.flags) out += flag_line(condition, flag);
  return out;
}

// The command of the words in front of the cursor, and whether a word of its own stands there already.
std::string walk(const CommandLine& program) {
  std::string out =
      "function __culprit_command\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  switch \"$words[1]\"\n";
  for (const CommandLine& command : program.commands) {
    out += "    case " + command.name + "\n";
    if (!command.commands.empty()) {
      std::string inner;
      for (const CommandLine& one : command.commands) inner += " " + one.name;
      out += "      contains -- \"$words[2]\"" + inner + "; and echo " + command.name +
             " $words[2]; and return\n";
    }
    out += "      echo " + command.name + "\n";
  }
  return out +
         "    case '*'\n      echo culprit\n  end\nend\n"
         "function __culprit_at\n  test (__culprit_command) = \"$argv\"\nend\n"
         "function __culprit_first\n"
         "  set -l command (string split ' ' (__culprit_command))\n"
         "  set -l depth (test \"$command\" = culprit; and echo 1; or math 1 + (count $command))\n"
         "  __culprit_at $argv; and test (count (commandline -opc)) -eq $depth\nend\n";
}

}  // namespace

std::string fish_completions(const CommandLine& program) {
  std::string out =
      "# Completions of culprit for fish, written by `culprit --completions fish`.\n\n" +
      walk(program) + "complete -c culprit -f\n";
  for (const auto& [words, command] : all_commands(program)) out += lines_of(words, *command);
  return out;
}

}  // namespace culprit::cli
