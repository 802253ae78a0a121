// Flags: the one table that makes the parser, the help texts and the near-name hints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace culprit::cli {

enum class Takes : std::uint8_t { kNothing, kValue, kOptionalValue };

struct Flag {
  std::string_view name;        // "json": given as --json
  std::string_view short_name;  // "v": given as -v; may be empty
  Takes takes = Takes::kNothing;
  std::string_view value;      // "FILE": what the help calls the value
  std::string_view help;       // one line
  std::string_view long_help;  // what it changes, and when to use it
  std::string_view hint;       // what a wrong value is answered with: what would be right
  unsigned commands = 0;       // kTo... of commands.h
  // Stores the value (empty for switches); false: the value is wrong. Null: not in this version.
  bool (*set)(Settings& settings, std::string_view value) = nullptr;
  // What completes the value, where the word that stands for it does not say (words_of).
  std::vector<std::string> (*words)() = nullptr;
};

std::span<const Flag> flags();
const Flag* find_flag(std::string_view name);              // null: no such flag
const Flag* find_short_flag(std::string_view short_name);  // null: no such flag
std::vector<std::string> flag_names();                     // "--json", ...; of this version

}  // namespace culprit::cli
