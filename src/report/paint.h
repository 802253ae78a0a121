// Paint: colour that repeats what a word already says. Applied to finished pieces of a line, after
// padding, because the escape codes have no width.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::report {

enum class Ink : std::uint8_t { kPlain, kBold, kDim, kRed, kYellow, kGreen };

inline std::string paint(std::string_view text, Ink ink, bool color) {
  constexpr std::string_view kCodes[] = {"",           "\x1b[1m",  "\x1b[2m",
                                         "\x1b[1;31m", "\x1b[33m", "\x1b[32m"};
  if (!color || ink == Ink::kPlain || text.empty()) return std::string(text);
  return std::string(kCodes[static_cast<std::size_t>(ink)]) + std::string(text) + "\x1b[0m";
}

}  // namespace culprit::report
