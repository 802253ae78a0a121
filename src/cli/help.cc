#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "cli/flags.h"

namespace culprit::cli {
namespace {

constexpr int kIndent = 2;

std::string spaces(int n) { return std::string(static_cast<std::size_t>(std::max(n, 0)), ' '); }

// `left` in a column of `column` wide, `right` wrapped beside it (or below, if left is too long).
std::string two_columns(std::string_view left, std::string_view right, int column, int width) {
  std::string out = spaces(kIndent) + text::pad_right(left, column);
  const std::vector<std::string> lines = text::wrap(right, width - kIndent - column - 2);
  const bool below = text::display_width(left) > column;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 || below) out += "\n" + spaces(kIndent + column);
    out += "  " + lines[i];
  }
  return out + "\n";
}

std::string paragraph(std::string_view words, int indent, int width) {
  std::string out;
  for (const std::string& line : text::wrap(words, width - indent)) {
    out += spaces(indent) + line + "\n";
  }
  return out;
}

std::string flag_form(const Flag& flag) {
  std::string out = flag.short_name.empty() ? "" : "-" + std::string(flag.short_name) + ", ";
  out += "--" + std::string(flag.name);
  if (flag.takes == Takes::kValue) out += " " + std::string(flag.value);
  if (flag.takes == Takes::kOptionalValue) out += " [" + std::string(flag.value) + "]";
  return out;
}

std::string flag_lines(unsigned commands, Help how, int width) {
  std::string out;
  for (const Flag& flag : flags()) {
    if (flag.help.empty() || (flag.commands & commands) == 0) continue;
    if (how == Help::kShort) {
      out += two_columns(flag_form(flag), flag.help, 20, width);
    } else {
      out += spaces(kIndent) + flag_form(flag) + "\n" + paragraph(flag.help, 6, width);
      if (!flag.long_help.empty()) out += paragraph(flag.long_help, 6, width);
    }
  }
  return out;
}

std::string exit_codes(int width) {
  return "exit codes\n" +
         two_columns("0", "answered, with suspects or without; also help, and a closed pipe", 3,
                     width) +
         two_columns("1", "answered, and a gate that you set has failed", 3, width) +
         two_columns("2", "not answered: usage, unreadable, unsupported or unusable input", 3,
                     width) +
         two_columns("130", "interrupted; no partial files are left", 3, width);
}

}  // namespace

std::string usage_text() {
  return "culprit names what makes a step of LLM decode slow, from a profiler trace.\n"
         "  culprit TRACE [FLAGS]           the verdict, on one screen\n"
         "  culprit COMMAND TRACE [FLAGS]   one table: steps budget kernels layers ops ...\n"
         "for example\n"
         "  culprit rank0.trace.json.gz\n"
         "  culprit compare before.json.gz after.json.gz\n"
         "more: culprit -h (every flag), culprit --help (explained), culprit help COMMAND,\n"
         "      culprit list formats (what is read, and how to record it)\n";
}

std::string help_text(Help how, int width) {
  std::string out =
      fmt::format("culprit {}: names what makes a step of LLM decode slow.\n\n", version());
  out += "usage: culprit [COMMAND] TRACE [FLAGS]     \"-\" is standard input\n\ncommands\n";
  for (const Command& command : commands()) {
    if (command.id == CommandId::kLater) continue;
    out += two_columns(command.name, command.summary, 9, width);
  }
  out += "\nflags\n" + flag_lines(kToAll, how, width) + "\n" + exit_codes(width);
  if (how == Help::kLong) {
    out += "\nexamples\n";
    for (const Command& command : commands()) {
      if (!command.example.empty()) out += spaces(kIndent) + std::string(command.example) + "\n";
    }
  }
  return out;
}

std::string command_help(const Command& command, Help how, int width) {
  std::string out = fmt::format("usage: culprit {} {}\n\n", command.name, command.operands);
  std::string summary(command.summary);
  out += paragraph(summary, 0, width);
  if (!command.details.empty()) out += "\n" + paragraph(command.details, 0, width);
  if (!command.example.empty()) out += fmt::format("\nexample: {}\n", command.example);
  const std::string lines = flag_lines(command.flags, how, width);
  if (!lines.empty()) out += "\nflags\n" + lines;
  return out;
}

}  // namespace culprit::cli
