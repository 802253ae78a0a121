#include <algorithm>
#include <array>
#include <csignal>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/near.h"
#include "base/version.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/describe.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/output_file.h"
#include "cli/parse.h"
#include "cli/run_command.h"

namespace culprit::cli {
namespace {

constexpr int kInterrupted = 130;

// Nothing is worth finishing for a user who has given up: leave at once, and no half file behind.
extern "C" void leave_at_once(int) {
  remove_partial_file();
  _exit(kInterrupted);
}

Outcome outcome_of(int exit_code) {
  return exit_code == 0   ? Outcome::kAnswered
         : exit_code == 1 ? Outcome::kGateFailed
                          : Outcome::kNotAnswered;
}

Outcome run_beside(const Beside::Tool& tool, const Settings& settings, Console& console) {
  if (tool.main == nullptr) {
    return console.fail(
        {.code = Error::Code::kUsage,
         .what = fmt::format("{} is not part of this build", settings.command->name),
         .where = {},
         .hint = {},
         .note_code = {}});
  }
  const std::vector<std::string_view> args(settings.words.begin(), settings.words.end());
  return outcome_of(tool.main(args, stdout, stderr));
}

Outcome help(const Settings& settings, Console& console, const Beside& beside) {
  const bool about_help = settings.command->id == CommandId::kHelp;
  const Help how = settings.help == Help::kNone ? Help::kLong : settings.help;
  if (!about_help) return console.answer(command_help(*settings.command, how, console.width()));
  if (settings.words.empty()) return console.answer(help_text(how, console.width()));
  const std::string& word = settings.words.front();
  const Command* command = find_command(word);
  if (command == nullptr || command->id == CommandId::kLater) {
    return console.fail({.code = Error::Code::kUsage,
                         .what = command ? fmt::format("the command \"{}\" is not in this version "
                                                       "({})",
                                                       word, version())
                                         : fmt::format("there is no command \"{}\"", word),
                         .where = {},
                         .hint = did_you_mean(word, command_names(), "`culprit help` lists them"),
                         .note_code = {}});
  }
  const Beside::Tool tool = command->id == CommandId::kForge ? beside.forge
                            : command->id == CommandId::kLab ? beside.lab
                                                             : Beside::Tool{};
  if (tool.main != nullptr) {
    constexpr std::array<std::string_view, 1> args{"--help"};
    return outcome_of(tool.main(args, stdout, stderr));
  }
  return console.answer(command_help(*command, how, console.width()));
}

std::string version_text(const Beside& beside) {
  if (beside.commit.empty()) return fmt::format("culprit {}\n", version());
  return fmt::format("culprit {} ({})\n", version(), beside.commit);
}

Outcome dispatch(const Settings& settings, Console& console, const Beside& beside) {
  if (settings.version) return console.answer(version_text(beside));
  if (!settings.completions.empty())
    return console.answer(completions(settings.completions, describe(beside)));
  if (settings.man) return console.answer(manual_page(describe(beside), beside.date));
  if (settings.help != Help::kNone) return help(settings, console, beside);
  const Status tables = add_tables(settings);
  if (!tables.ok() && settings.command->id != CommandId::kForge &&
      settings.command->id != CommandId::kLab && settings.command->id != CommandId::kHelp) {
    return console.fail(tables.error());
  }
  switch (settings.command->id) {
    case CommandId::kDiagnose:
    case CommandId::kTable:
    case CommandId::kWhatIf:
    case CommandId::kExplain:
      std::signal(SIGINT, leave_at_once);
      return diagnose(settings, console);
    case CommandId::kFloor:
      std::signal(SIGINT, leave_at_once);
      return floor(settings, console);
    case CommandId::kCompare:
      std::signal(SIGINT, leave_at_once);
      return compare(settings, console);
    case CommandId::kSql:
      std::signal(SIGINT, leave_at_once);
      return sql(settings, console);
    case CommandId::kSlice:
      std::signal(SIGINT, leave_at_once);
      return slice(settings, console);
    case CommandId::kFleet:
      std::signal(SIGINT, leave_at_once);
      return fleet(settings, console);
    case CommandId::kList:
      return list(settings, console);
    case CommandId::kForge:
      return run_beside(beside.forge, settings, console);
    case CommandId::kLab:
      std::signal(SIGINT, leave_at_once);
      return run_beside(beside.lab, settings, console);
    case CommandId::kHelp:
      return help(settings, console, beside);
    case CommandId::kLater:
      break;
  }
  return Outcome::kNotAnswered;
}

Outcome run(std::span<const std::string_view> args, const Beside& beside) {
  const Settings none;
  Console console(none);
  if (args.empty()) {
    console.say(usage_text());
    return Outcome::kNotAnswered;
  }
  const Result<Settings> settings = parse(args);
  if (!settings.ok()) return console.fail(settings.error());
  Console chosen(*settings);
  return dispatch(*settings, chosen, beside);
}

}  // namespace

int main(int argc, char** argv, const Beside& beside) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is seen as EPIPE, and is no failure
  const std::vector<std::string_view> args(argv + std::min(argc, 1), argv + argc);
  const Outcome outcome = run(args, beside);
  return outcome == Outcome::kAnswered      ? 0
         : outcome == Outcome::kGateFailed  ? 1
         : outcome == Outcome::kNotAnswered ? 2
                                            : kInterrupted;
}

}  // namespace culprit::cli
