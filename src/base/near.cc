#include "base/near.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace culprit {
namespace {

constexpr std::size_t kMaxCompared = 64;

std::string folded(std::string_view text) {
  std::string out(text.substr(0, kMaxCompared));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Optimal string alignment: Levenshtein plus the swap of two neighbours, which is the commonest
// slip of all.
std::size_t edits(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kMaxCompared + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

constexpr std::size_t kFar = SIZE_MAX;

// Smaller is nearer. A part of a name ("H100" of "H100 SXM") beats a misspelling only if nothing is
// misspelt.
std::size_t distance(std::string_view word, std::string_view name) {
  const std::size_t changed = edits(word, name);
  const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), name.size()) / 3);
  if (changed <= allowed && changed < word.size()) return changed;
  constexpr std::size_t kShortestPart = 3;
  const bool part = word.size() >= kShortestPart && name.find(word) != std::string_view::npos;
  const bool whole = name.size() >= kShortestPart && word.find(name) != std::string_view::npos;
  return part || whole ? kMaxCompared + changed : kFar;
}

}  // namespace

std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& names,
                                    std::size_t limit) {
  struct Candidate {
    std::size_t distance;
    std::size_t index;
  };
  const std::string wanted = folded(word);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t far = distance(wanted, folded(names[i]));
    if (far != kFar) candidates.push_back({far, i});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  std::vector<std::string> near;
  for (const Candidate& candidate : candidates) {
    if (near.size() == limit) break;
    near.push_back(names[candidate.index]);
  }
  return near;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view otherwise) {
  const std::vector<std::string> near = near_names(word, names);
  if (near.empty()) return std::string(otherwise);
  std::string text = "did you mean: ";
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += ", ";
    text += near[i];
  }
  return text + "?";
}

}  // namespace culprit
