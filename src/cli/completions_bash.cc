// Two tables as functions (what a command takes, what a flag takes) and a walk over the words in front
// of the cursor. Needs nothing of the package bash-completion.
#include <fmt/format.h>

#include <map>

#include "cli/completions.h"

namespace culprit::cli {
namespace {

constexpr std::string_view kWalk = R"bash(
_culprit() {
  local IFS=$'\n' at=culprit operand= flag= i word flags commands words files takes
  local -a given=() fits=()
  COMPREPLY=()
  # "--flag=value" comes in three words where "=" breaks them.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((${#given[@]})) && [[ ${given[-1]} == --*= || ($word == = && ${given[-1]} == --*) ]]; then
      given[-1]+=$word
    else
      given+=("$word")
    fi
  done
  local last=$((${#given[@]} - 1))
  for ((i = 0; i < last; i++)); do
    word=${given[i]}
    if [[ $word == -?* ]]; then
      [[ $word == *=* ]] && continue
      _culprit_flag "$at" "$word"
      if [[ $takes == value ]]; then
        ((++i == last)) && flag=$word
      fi
    elif [[ -z $operand ]]; then
      _culprit_command "$at"
      if [[ $'\n'$commands$'\n' == *$'\n'"$word"$'\n'* ]]; then at+=" $word"; else operand=$word; fi
    fi
  done
  local cur=${given[last]} before=
  if [[ -z $flag && $cur == --*=* ]]; then
    flag=${cur%%=*} cur=${cur#*=}
    [[ ${COMP_WORDS[COMP_CWORD]} == --*=* ]] && before=$flag=
  fi
  if [[ -n $flag ]]; then
    _culprit_flag "$at" "$flag"
    fits=($words)
  else
    _culprit_command "$at"
    if [[ $cur == -* ]]; then
      fits=($flags) files=
    else
      fits=($words)
      [[ -z $operand ]] && fits+=($commands)
    fi
  fi
  cur=${cur//\\/}
  for word in "${fits[@]}"; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$before$([[ $files ]] && echo "$word" || printf '%q' "$word")")
  done
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    for word in $(compgen -f -- "$cur"); do COMPREPLY+=("$before$word"); done
  fi
}
complete -F _culprit culprit
)bash";

std::string lines_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : "\n") + word;
  return single_quoted(out);
}

std::string set_words(const Words& words) {
  std::string out = "words=" + (words.known.empty() ? std::string() : lines_of(words.known));
  return out + (words.files ? " files=1" : " files=");
}

// Cases that do the same are one: "a | b) ... ;;".
std::string cases(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::vector<std::string> order;
  std::map<std::string, std::string> patterns;
  for (const auto& [pattern, body] : rows) {
    std::string& all = patterns[body];
    if (all.empty()) order.push_back(body);
    all += (all.empty() ? "" : " | ") + pattern;
  }
  std::string out;
  for (const std::string& body : order) out += fmt::format("    {}) {} ;;\n", patterns[body], body);
  return out;
}

std::string commands_function(const CommandLine& program) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [words, command] : all_commands(program)) {
    std::vector<std::string> flags, inner;
    for (const FlagLine& flag : command->flags)
      for (const std::string& name : flag.names) flags.push_back(name);
    for (const CommandLine& one : command->commands) inner.push_back(one.name);
    rows.emplace_back(single_quoted(words),
                      fmt::format("flags={} commands={} {}", lines_of(flags), lines_of(inner),
                                  set_words(command->words)));
  }
  return "_culprit_command() {\n  flags= commands= words= files=\n  case $1 in\n" + cases(rows) +
         "  esac\n}\n";
}

// A flag that means the same wherever it stands needs one case.
std::string flags_function(const CommandLine& program) {
  struct Use {
    std::string command, body;
  };
  std::map<std::string, std::vector<Use>> uses;
  for (const auto& [words, command] : all_commands(program))
    for (const FlagLine& flag : command->flags)
      for (const std::string& name : flag.names) {
        const std::string_view takes = flag.value.empty()    ? "none"
                                       : flag.may_lack_value ? "maybe"
                                                             : "value";
        uses[name].push_back({words, fmt::format("takes={} {}", takes, set_words(flag.words))});
      }
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [name, all] : uses) {
    bool same = true;
    for (const Use& use : all) same = same && use.body == all.front().body;
    if (same) {
      rows.emplace_back("*" + single_quoted(" " + name), all.front().body);
      continue;
    }
    for (const Use& use : all) rows.emplace_back(single_quoted(use.command + " " + name), use.body);
  }
  return "_culprit_flag() {\n  takes=none words= files=\n  case \"$1 $2\" in\n" + cases(rows) +
         "  esac\n}\n";
}

}  // namespace

std::string bash_completions(const CommandLine& program) {
  return "# Completions of culprit for bash, written by `culprit --completions bash`.\n\n" +
         commands_function(program) + flags_function(program) + std::string(kWalk);
}

}  // namespace culprit::cli
