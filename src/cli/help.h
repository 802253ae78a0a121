// Help: every page is made from the tables of commands and flags, so that none can lack one.
#pragma once

#include <string>

#include "cli/commands.h"
#include "cli/settings.h"

namespace culprit::cli {

std::string usage_text();  // eight lines, for a command line without words
// One line per command and flag (kShort), or with explanations and examples (kLong).
std::string help_text(Help how, int width);
std::string command_help(const Command& command, Help how, int width);

}  // namespace culprit::cli
