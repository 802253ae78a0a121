// The manual page, in mdoc (mandoc(1), groff_mdoc(7)), made from a CommandLine: every command, flag
// and example that the program has.
#pragma once

#include <string>
#include <string_view>

#include "base/command_line.h"

namespace culprit::cli {

// `date`: as mdoc writes it ("December 1, 2026"); empty: not dated.
std::string manual_page(const CommandLine& program, std::string_view date);

}  // namespace culprit::cli
