#include "base/command_line.h"

#include <algorithm>
#include <array>

namespace culprit {

Words words_of(std::string_view placeholder) {
  constexpr std::array<std::string_view, 8> kFiles{"FILE",     "PATH",   "DIR",    "TRACE",
                                                   "TRACE...", "CONFIG", "BEFORE", "AFTER"};
  constexpr std::string_view kBetween = "|[] ";
  Words words;
  for (std::size_t first = 0; first < placeholder.size();) {
    const std::size_t last =
        std::min(placeholder.find_first_of(kBetween, first), placeholder.size());
    const std::string_view word = placeholder.substr(first, last - first);
    first = last + 1;
    if (std::find(kFiles.begin(), kFiles.end(), word) != kFiles.end()) words.files = true;
    const bool small = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || c == '-';
    });
    if (small && word.front() != '-') words.known.emplace_back(word);
  }
  return words;
}

}  // namespace culprit
