// The command line of `culprit forge`: one table of flags makes parser and help.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "forge/emit.h"
#include "forge/recipes.h"

namespace culprit::forge {

struct Options {
  const Recipe* recipe = nullptr;  // null with help and list
  std::string output;
  std::string config_dir;  // empty: none
  Choice choice;
  WriteOptions write;
  std::uint64_t size = 0;    // bytes, 0: as the run has it
  std::uint64_t events = 0;  // at least
  bool steps_given = false;
  bool all_ranks = false;         // `output` is a folder then
  bool clocks = false;            // each rank's clock is off and drifts
  std::optional<bool> call_from;  // as given
  bool help = false;
  bool list = false;
};

// Error::kUsage for anything unknown, naming the near match.
Result<Options> parse(std::span<const std::string_view> args);

std::string help_text();
std::string list_text();

}  // namespace culprit::forge
