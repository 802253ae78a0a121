#include "cli/describe.h"

#include "cli/commands.h"
#include "cli/flags.h"

namespace culprit::cli {
namespace {

FlagLine described(const Flag& flag) {
  FlagLine line;
  line.names.push_back("--" + std::string(flag.name));
  if (!flag.short_name.empty()) line.names.push_back("-" + std::string(flag.short_name));
  line.value = flag.value;
  line.may_lack_value = flag.takes == Takes::kOptionalValue;
  line.words = words_of(flag.value);
  if (flag.words != nullptr)
    for (std::string& word : flag.words()) line.words.known.push_back(std::move(word));
  line.help = flag.help;
  line.details = flag.long_help;
  return line;
}

std::vector<FlagLine> flags_of(unsigned commands) {
  std::vector<FlagLine> lines;
  for (const Flag& flag : flags())
    if (!flag.help.empty() && (flag.commands & commands) != 0) lines.push_back(described(flag));
  return lines;
}

CommandLine described(const Command& command, const Beside& beside) {
  const auto beside_it = command.id == CommandId::kForge ? beside.forge.describe
                         : command.id == CommandId::kLab ? beside.lab.describe
                                                         : nullptr;
  CommandLine line;
  if (beside_it != nullptr) line = beside_it();
  line.name = command.name;
  line.operands = command.operands;
  line.summary = command.summary;
  line.details = command.details;
  if (!command.example.empty()) line.examples.emplace_back(command.example);
  if (beside_it != nullptr) return line;
  line.words = words_of(command.operands);
  if (command.id == CommandId::kHelp) line.words.known = command_names();
  line.flags = flags_of(command.flags);
  return line;
}

}  // namespace

CommandLine describe(const Beside& beside) {
  CommandLine program = described(default_command(), beside);
  program.name = "culprit";
  program.summary = "name what makes a step of LLM decode slow";
  for (const Command& command : commands())
    if (command.id != CommandId::kLater) program.commands.push_back(described(command, beside));
  return program;
}

}  // namespace culprit::cli
