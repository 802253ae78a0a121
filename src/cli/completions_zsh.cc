// A function for each command, which hands its flags and operands to _arguments.
#include <fmt/format.h>

#include <algorithm>

#include "cli/completions.h"

namespace culprit::cli {
namespace {

std::string function_of(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '_');
  return "_" + words;
}

// A colon ends a part of a specification, brackets its description.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string word_list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : " ") + escaped(word, "\\ ()[]:\"'$`");
  return out;
}

// What completes `words`, as the last part of a specification.
std::string action(const Words& words) {
  if (words.files && words.known.empty()) return "_files";
  if (words.files) return " _culprit_either " + word_list(words.known);
  return words.known.empty() ? " " : "(" + word_list(words.known) + ")";
}

// '*--color=[auto, always or never]:WHEN:(auto always never)'
std::string flag_spec(const FlagLine& flag, const std::string& name) {
  const bool is_long = name.starts_with("--");
  const std::string help = escaped(flag.help, "\\[]:");
  if (flag.value.empty()) return single_quoted(fmt::format("*{}[{}]", name, help));
  const std::string value = escaped(flag.value, "\\:");
  const std::string_view sign = !is_long ? "" : flag.may_lack_value ? "=-" : "=";
  return single_quoted(fmt::format("*{}{}[{}]{}{}:{}", name, sign, help,
                                   flag.may_lack_value ? "::" : ":", value, action(flag.words)));
}

std::string name_list(const CommandLine& command) {
  std::string out = "  local -a inner=(\n";
  for (const CommandLine& one : command.commands)
    out += "    " + single_quoted(fmt::format("{}:{}", one.name, one.summary)) + "\n";
  return out + "  )\n";
}

std::string function_for(const std::string& words, const CommandLine& command) {
  std::string out = function_of(words) + "() {\n";
  if (!command.commands.empty()) {
    out += name_list(command);
    out +=
        "  if (( CURRENT > 2 && ${inner[(I)${(b)words[2]}:*]} )); then\n"
        "    local name=" +
        function_of(words) +
        "_${words[2]}\n"
        "    shift words\n    (( CURRENT-- ))\n    $name\n    return\n  fi\n"
        "  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n"
        "    _describe -t commands command inner\n";
    if (command.words.files) out += "    _files\n";
    out += "    return\n  fi\n";
  }
  out += "  _arguments -s";
  for (const FlagLine& flag : command.flags)
    for (const std::string& name : flag.names) out += " \\\n    " + flag_spec(flag, name);
  if (!command.words.known.empty() || command.words.files)
    out += " \\\n    " + single_quoted("*:operand:" + action(command.words));
  return out + "\n}\n";
}

}  // namespace

std::string zsh_completions(const CommandLine& program) {
  std::string out =
      "#compdef culprit\n"
      "# Completions of culprit for zsh, written by `culprit --completions zsh`.\n\n"
      "_culprit_either() { _alternative 'files:file:_files' \"words:word:(${(j: :)${(q)@}})\" }\n";
  for (const auto& [words, command] : all_commands(program)) out += function_for(words, *command);
  // Loaded by compinit the file is the body of the function; sourced it registers it.
  return out +
         "if [[ $funcstack[1] == _culprit ]]; then _culprit \"$@\"; else compdef _culprit culprit; "
         "fi\n";
}

}  // namespace culprit::cli
