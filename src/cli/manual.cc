#include "cli/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::cli {
namespace {

constexpr int kTextWidth = 72;

// Text that is not to be read as a request: backslashes doubled, leading dots guarded.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text::ascii(text::clean(text))) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '`') {
      out += "\\(ga";
    } else {
      out += c;
    }
  }
  return out;
}

// Words as arguments of a macro: none is taken for a macro or a delimiter.
std::string arguments(std::string_view text) {
  std::string out;
  const std::string words = plain(text);
  for (std::size_t first = 0; first < words.size();) {
    const std::size_t last = std::min(words.find(' ', first), words.size());
    if (last > first) out += " \\&" + words.substr(first, last - first);
    first = last + 1;
  }
  return out;
}

bool ends_sentence(std::string_view line, std::size_t at) {
  const bool stop = line[at] == '.' || line[at] == '?' || line[at] == '!';
  return stop && at + 1 < line.size() && line[at + 1] == ' ';
}

// Filled text: each sentence begins a line.
std::string paragraph(std::string_view text) {
  std::string out;
  for (std::size_t first = 0; first < text.size();) {
    std::size_t last = first;
    while (last < text.size() && !ends_sentence(text, last)) ++last;
    last = std::min(last + 1, text.size());
    for (const std::string& line : text::wrap(text.substr(first, last - first), kTextWidth)) {
      const std::string safe = plain(line);
      out += (safe.starts_with('.') || safe.starts_with('\'') ? "\\&" : "") + safe + "\n";
    }
    first = std::min(text.find_first_not_of(' ', last), text.size());
  }
  return out;
}

// A text of several lines; those that begin with two spaces stand as they are.
std::string body(std::string_view text) {
  std::string out, filled;
  bool shown = false;
  const auto flush = [&] {
    out += paragraph(filled);
    filled.clear();
  };
  const auto show = [&](bool want) {
    if (want != shown) out += want ? ".Bd -literal\n" : ".Ed\n";
    shown = want;
  };
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t last = std::min(text.find('\n', first), text.size());
    const std::string_view line = text.substr(first, last - first);
    first = last + 1;
    const bool literal = line.starts_with("  ");
    if (literal) flush();
    show(literal);
    if (literal) {
      out += plain(line.substr(2)) + "\n";
    } else {
      filled += (filled.empty() ? "" : " ") + std::string(line);
    }
  }
  flush();
  show(false);
  return out;
}

std::string flag_item(const FlagLine& flag) {
  std::string out = ".It";
  for (std::size_t i = 0; i < flag.names.size(); ++i)
    out += (i > 0 ? " , Fl " : " Fl ") + flag.names[i].substr(1);
  std::string value(flag.value);
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);
  const bool may_lack = flag.may_lack_value;
  if (!value.empty()) out += (may_lack ? " Op Ar" : " Ar") + arguments(value);
  out += "\n" + paragraph(flag.help);
  if (!flag.details.empty()) out += ".Pp\n" + paragraph(flag.details);
  return out;
}

std::string flag_list(const std::vector<FlagLine>& flags) {
  if (flags.empty()) return {};
  std::string out = ".Bl -tag -width Ds\n";
  for (const FlagLine& flag : flags) out += flag_item(flag);
  return out + ".El\n";
}

std::string own_flags_text(const CommandLine& command, const CommandLine& program) {
  std::vector<FlagLine> own;
  for (const FlagLine& flag : command.flags)
    if (std::find(program.flags.begin(), program.flags.end(), flag) == program.flags.end())
      own.push_back(flag);
  return own.empty() ? std::string() : ".Pp\nIts own flags:\n" + flag_list(own);
}

std::string command_item(const CommandLine& command, const CommandLine& program) {
  std::string out = ".It Cm \\&" + command.name;
  if (!command.operands.empty()) out += " Ar" + arguments(command.operands);
  out += "\n" + paragraph(command.summary + ".");
  if (!command.details.empty()) out += ".Pp\n" + body(command.details);
  return command.commands.empty() ? out + own_flags_text(command, program) : out;
}

// A command of commands has a section.
std::string section_of(const CommandLine& command) {
  std::string upper = command.name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string out = ".Sh " + upper + "\n";
  for (const CommandLine& inner : command.commands) {
    out += fmt::format(".Ss culprit {} {}\n", command.name, inner.name);
    out += paragraph(inner.summary + ".");
    if (!inner.details.empty()) out += ".Pp\n" + body(inner.details);
    out += flag_list(inner.flags);
  }
  return out;
}

constexpr std::string_view kEnvironment = R"(.Sh ENVIRONMENT
.Bl -tag -width Ds
.It Ev COLUMNS
The width of the text, unless
.Fl -width
says otherwise.
.It Ev NO_COLOR , CLICOLOR_FORCE , FORCE_COLOR
Whether text is coloured, unless
.Fl -color
says otherwise.
.It Ev LC_ALL , LC_CTYPE , LANG
The first that is set decides whether bars and arrows are drawn in UTF-8 or
ASCII.
.It Ev XDG_CONFIG_HOME
Where
.Pa culprit/gpus.csv
and
.Pa culprit/models.csv
lie;
.Pa ~/.config
by default.
.El
.Sh FILES
.Bl -tag -width Ds
.It Pa ~/.config/culprit/gpus.csv
GPUs of your own, on top of the built-in table.
.It Pa ~/.config/culprit/models.csv
Models of your own.
.El
.Sh EXIT STATUS
.Bl -tag -width Ds
.It 0
Answered, with suspects or without; also help, and a closed pipe.
.It 1
Answered, and a gate that you set has failed.
.It 2
Not answered: usage, unreadable, unsupported or unusable input.
The reason is on the standard error.
.It 130
Interrupted; no partial files are left.
.El
)";

std::string examples(const CommandLine& program) {
  std::string out = ".Sh EXAMPLES\n.Bd -literal\n";
  for (const CommandLine& command : program.commands)
    for (const std::string& example : command.examples) out += plain(example) + "\n";
  return out + ".Ed\n";
}

}  // namespace

std::string manual_page(const CommandLine& program, std::string_view date) {
  std::string out = fmt::format(".Dd {}\n.Dt CULPRIT 1\n.Os\n", date);
  out += ".Sh NAME\n.Nm culprit\n.Nd " + plain(program.summary) + "\n";
  out +=
      ".Sh SYNOPSIS\n.Nm\n.Op Ar command\n.Ar trace ...\n.Op Ar flags\n"
      ".Sh DESCRIPTION\n.Nm\nreads the trace that a profiler wrote of an LLM server and names what "
      "makes its\nsteps slow, with the figures that prove it, those that rule the others out, and\n"
      "what a fix buys.\nSeveral traces, or a folder, are the ranks of one run;\n.Sq -\n"
      "is the standard input.\n";
  out += ".Sh COMMANDS\n.Bl -tag -width Ds\n";
  for (const CommandLine& command : program.commands) out += command_item(command, program);
  out += ".El\n.Sh OPTIONS\n" + flag_list(program.flags);
  for (const CommandLine& command : program.commands)
    if (!command.commands.empty()) out += section_of(command);
  return out + std::string(kEnvironment) + examples(program);
}

}  // namespace culprit::cli
