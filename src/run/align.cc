#include "run/align.h"

#include <algorithm>
#include <optional>

namespace culprit::run {
namespace {

using Places = std::vector<std::uint32_t>;

// Lays all of `part` into `whole` as early as possible.
std::optional<Places> embed(const Symbols& part, const Symbols& whole) {
  Places places;
  places.reserve(part.size());
  std::uint32_t next = 0;
  for (const std::uint32_t symbol : part) {
    while (next < whole.size() && whole[next] != symbol) ++next;
    if (next == whole.size()) return std::nullopt;
    places.push_back(next++);
  }
  return places;
}

// Lays a longest common subsequence into both as early as possible. `size` below 65,536.
Places embed_most(const Symbols& part, const Symbols& whole) {
  const std::size_t rows = part.size() + 1, columns = whole.size() + 1;
  std::vector<std::uint16_t> longest(rows * columns, 0);  // of the ends that begin at (row, column)
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint16_t& {
    return longest[i * columns + j];
  };
  for (std::size_t i = part.size(); i-- > 0;)
    for (std::size_t j = whole.size(); j-- > 0;)
      at(i, j) = part[i] == whole[j] ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1)
                                     : std::max(at(i + 1, j), at(i, j + 1));
  Places places(part.size(), kUnpaired);
  for (std::size_t i = 0, j = 0; i < part.size() && j < whole.size();) {
    if (part[i] == whole[j])
      places[i++] = static_cast<std::uint32_t>(j++);
    else if (at(i + 1, j) >= at(i, j + 1))
      ++i;
    else
      ++j;
  }
  return places;
}

Symbols reversed(const Symbols& symbols) { return {symbols.rbegin(), symbols.rend()}; }

// Places in the reversed whole of the reversed part -> places as they are.
Places turned(const Places& places, std::size_t whole) {
  Places result(places.rbegin(), places.rend());
  for (std::uint32_t& place : result)
    if (place != kUnpaired) place = static_cast<std::uint32_t>(whole) - 1 - place;
  return result;
}

}  // namespace

std::vector<std::uint32_t> pair_up(const Symbols& part, const Symbols& whole) {
  constexpr std::size_t kMostCells = std::size_t{1} << 24;  // 32 MB
  constexpr std::size_t kLongest = 60'000;
  Places early, late;
  if (auto all = embed(part, whole)) {
    early = *std::move(all);
    late = turned(*embed(reversed(part), reversed(whole)), whole.size());
  } else {
    if (std::min(part.size(), whole.size()) > kLongest ||
        (part.size() + 1) * (whole.size() + 1) > kMostCells)
      return Places(part.size(), kUnpaired);
    early = embed_most(part, whole);
    late = turned(embed_most(reversed(part), reversed(whole)), whole.size());
  }
  for (std::size_t i = 0; i < early.size(); ++i)
    if (early[i] != late[i]) early[i] = kUnpaired;
  return early;
}

}  // namespace culprit::run
