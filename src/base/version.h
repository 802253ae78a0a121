// The version of the program, as the build defines it.
#pragma once

#include <string_view>

namespace culprit {

std::string_view version();  // "0.1.0"

}  // namespace culprit
