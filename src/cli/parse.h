// Parser: words to Settings. Pure: looks at no file and prints nothing. Every fault is a kUsage
// Error that names what would be right.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "cli/settings.h"

namespace culprit::cli {

// The words after the program's name. Settings::command is always set. The arguments of `forge` and
// `lab` are their own: parsing ends there, and `words` holds them as they are.
Result<Settings> parse(std::span<const std::string_view> args);

// Is a query of `sql` about its tables (".tables", ".schema kernels") and not about a trace?
bool is_about_tables(std::string_view query);

}  // namespace culprit::cli
