#include "compare/align.h"

#include <algorithm>
#include <map>
#include <span>

namespace culprit::compare {
namespace {

using Marks = std::span<const Mark>;

// Costs of a pair, against two gaps. Another role is never a pair, another name rather than two gaps.
constexpr int kGap = 20, kApart = 1000;
constexpr int kOtherGrid = 2, kOtherCalls = 5, kOtherArguments = 6, kOtherName = 26, kOtherOp = 8;

bool recorded(const store::Dim3& grid) { return grid != store::Dim3{}; }

int cost_of(const Mark& a, const Mark& b) {
  if (a.name != b.name && a.role != b.role) return kApart;
  int cost = a.name == b.name ? 0 : a.base == b.base ? kOtherArguments : kOtherName;
  if (a.name == b.name && recorded(a.grid) && recorded(b.grid) && a.grid != b.grid)
    cost += kOtherGrid;
  if (std::max(a.calls, b.calls) >= 2 * std::min(a.calls, b.calls)) cost += kOtherCalls;
  if (a.name != b.name && !a.op.empty() && !b.op.empty())
    cost += a.op == b.op ? -kOtherOp : kOtherOp;
  return cost;
}

enum class Move : std::uint8_t { kPair, kBefore, kAfter };

// The moves that end in each cell, row by row.
class Table {
 public:
  Table(Marks before, Marks after)
      : width_(after.size() + 1), moves_((before.size() + 1) * width_) {
    std::vector<int> row(width_), above(width_);
    for (std::size_t j = 0; j < width_; ++j) {
      above[j] = static_cast<int>(j) * kGap;
      moves_[j] = Move::kAfter;
    }
    for (std::size_t i = 1; i <= before.size(); ++i) {
      row[0] = static_cast<int>(i) * kGap;
      moves_[i * width_] = Move::kBefore;
      for (std::size_t j = 1; j < width_; ++j) {
        const int pair = above[j - 1] + cost_of(before[i - 1], after[j - 1]);
        const int gone = above[j] + kGap, added = row[j - 1] + kGap;
        row[j] = std::min({pair, gone, added});
        moves_[i * width_ + j] = row[j] == pair   ? Move::kPair
                                 : row[j] == gone ? Move::kBefore
                                                  : Move::kAfter;
      }
      std::swap(row, above);
    }
  }

  std::vector<Pair> pairs() const {
    std::vector<Pair> pairs;
    std::size_t i = moves_.size() / width_ - 1, j = width_ - 1;
    while (i > 0 || j > 0) {
      const Move move = moves_[i * width_ + j];
      if (move != Move::kAfter) --i;
      if (move != Move::kBefore) --j;
      pairs.push_back({move == Move::kAfter ? -1 : static_cast<int>(i),
                       move == Move::kBefore ? -1 : static_cast<int>(j), false});
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

 private:
  std::size_t width_;
  std::vector<Move> moves_;
};

// What is left over on both sides under one key stands in for each other, in order, at the place of the
// first. With `alone` only where there is one on each side.
template <class KeyOf>
void pair_leftovers(const std::vector<Mark>& before, const std::vector<Mark>& after, bool alone,
                    KeyOf&& key_of, std::vector<Pair>& pairs) {
  using Key = decltype(key_of(before.front()));
  std::map<Key, std::vector<std::size_t>> gone, added;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (pairs[p].after < 0)
      gone[key_of(before[static_cast<std::size_t>(pairs[p].before)])].push_back(p);
    if (pairs[p].before < 0)
      added[key_of(after[static_cast<std::size_t>(pairs[p].after)])].push_back(p);
  }
  std::vector<std::uint8_t> spent(pairs.size(), 0);
  for (const auto& [key, from] : gone) {
    const auto to = added.find(key);
    if (to == added.end() || (alone && (from.size() != 1 || to->second.size() != 1))) continue;
    for (std::size_t k = 0; k < std::min(from.size(), to->second.size()); ++k) {
      const std::size_t first = std::min(from[k], to->second[k]);
      const std::size_t other = std::max(from[k], to->second[k]);
      pairs[first] = {pairs[from[k]].before, pairs[to->second[k]].after, false};
      spent[other] = 1;
    }
  }
  std::size_t kept = 0;
  for (std::size_t p = 0; p < pairs.size(); ++p)
    if (spent[p] == 0) pairs[kept++] = pairs[p];
  pairs.resize(kept);
}

// A kernel that moved in the step; then the only one of its role that is called so often: where a step
// is cut elsewhere (behind its last all-reduce), the first kernel of one side is the last of the other.
void pair_moved(const std::vector<Mark>& before, const std::vector<Mark>& after,
                std::vector<Pair>& pairs) {
  if (before.empty() || after.empty()) return;
  pair_leftovers(
      before, after, false, [](const Mark& mark) { return mark.name; }, pairs);
  pair_leftovers(
      before, after, true, [](const Mark& mark) { return std::pair(mark.role, mark.calls); },
      pairs);
}

}  // namespace

std::vector<Pair> align(const std::vector<Mark>& before, std::size_t ordered_before,
                        const std::vector<Mark>& after, std::size_t ordered_after) {
  // Equal costs are settled by the order of the sides; a swap must not change that order.
  if (after < before) {
    std::vector<Pair> pairs = align(after, ordered_after, before, ordered_before);
    for (Pair& pair : pairs) std::swap(pair.before, pair.after);
    return pairs;
  }
  std::vector<Pair> pairs =
      Table(Marks(before).first(ordered_before), Marks(after).first(ordered_after)).pairs();
  for (std::size_t i = ordered_before; i < before.size(); ++i)
    pairs.push_back({static_cast<int>(i), -1, false});
  for (std::size_t j = ordered_after; j < after.size(); ++j)
    pairs.push_back({-1, static_cast<int>(j), false});
  pair_moved(before, after, pairs);
  for (Pair& pair : pairs) {
    pair.anchor = pair.before >= 0 && pair.after >= 0 &&
                  before[static_cast<std::size_t>(pair.before)].name ==
                      after[static_cast<std::size_t>(pair.after)].name;
  }
  return pairs;
}

}  // namespace culprit::compare
