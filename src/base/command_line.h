// CommandLine: what a command takes, as data, made from the tables that parse it. Completions and the
// manual page are written from it, so that they can neither lack a flag nor know one too many.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit {

// What may stand in one place of a command line.
struct Words {
  std::vector<std::string> known;  // all that fit, as far as they are known
  bool files = false;              // files and folders fit, too

  friend bool operator==(const Words&, const Words&) = default;
};
// What a placeholder of a help text stands for: FILE, PATH, TRACE, CONFIG and their like are files,
// words in small letters are themselves: "FILE|none" is a file or the word none.
Words words_of(std::string_view placeholder);

struct FlagLine {
  std::vector<std::string> names;  // "--verbose", "-v"
  std::string value;               // "FILE"; empty: it takes none
  bool may_lack_value = false;
  Words words;  // of the value
  std::string help, details;

  friend bool operator==(const FlagLine&, const FlagLine&) = default;
};

struct CommandLine {
  std::string name;      // "kernels"; in a command of another ("lab bench") the last word
  std::string operands;  // "TRACE"; empty: none
  std::string summary, details;
  std::vector<std::string> examples;
  Words words;  // of the operands
  std::vector<FlagLine> flags;
  std::vector<CommandLine> commands;  // the first word names one of them
};

}  // namespace culprit
