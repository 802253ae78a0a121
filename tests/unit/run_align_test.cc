// Places that are certain, by hand and against every way to lay one sequence into another.
#include "run/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace culprit::run {
namespace {

constexpr std::uint32_t kNo = kUnpaired;
using Places = std::vector<std::uint32_t>;

TEST(Align, EqualSequencesPairOneToOne) {
  EXPECT_EQ(pair_up({5, 5, 6, 5}, {5, 5, 6, 5}), (Places{0, 1, 2, 3}));
  EXPECT_EQ(pair_up({}, {1}), Places{});
}

TEST(Align, WhatCouldStandAtTwoPlacesStandsAtNone) {
  EXPECT_EQ(pair_up({1, 2}, {1, 1, 2}), (Places{kNo, 2}));
  EXPECT_EQ(pair_up({1, 2, 1}, {1, 9, 2, 9, 1}), (Places{0, 2, 4}));
}

TEST(Align, WhatIsNotThereIsLeftOut) {
  EXPECT_EQ(pair_up({1, 7, 2, 3}, {1, 2, 3}), (Places{0, kNo, 1, 2}));
  EXPECT_EQ(pair_up({1, 1, 2}, {1, 2}), (Places{kNo, kNo, 1}));  // either could be the lost one
  EXPECT_EQ(pair_up({4, 5}, {6}), (Places{kNo, kNo}));
}

// All ways to lay `part` into `whole`; `seen[i]`: the places that symbol i takes in any of them.
void lay(const Symbols& part, const Symbols& whole, std::size_t i, Places& at,
         std::vector<std::vector<std::uint8_t>>& seen) {
  if (i == part.size()) {
    for (std::size_t k = 0; k < at.size(); ++k) seen[k][at[k]] = 1;
    return;
  }
  for (std::uint32_t j = i == 0 ? 0 : at[i - 1] + 1; j < whole.size(); ++j) {
    if (whole[j] != part[i]) continue;
    at[i] = j;
    lay(part, whole, i + 1, at, seen);
  }
}

TEST(Align, PairsWhatEveryWayAgreesOn) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Symbols whole(2 + random() % 9), part;
    for (auto& symbol : whole) symbol = static_cast<std::uint32_t>(random() % 3);
    for (const auto symbol : whole)
      if (random() % 2 == 0) part.push_back(symbol);
    std::vector<std::vector<std::uint8_t>> seen(part.size(),
                                                std::vector<std::uint8_t>(whole.size(), 0));
    Places at(part.size());
    lay(part, whole, 0, at, seen);
    const Places found = pair_up(part, whole);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto ways = std::count(seen[i].begin(), seen[i].end(), 1);
      EXPECT_EQ(found[i] != kNo, ways == 1);
      if (found[i] != kNo) {
        EXPECT_EQ(seen[i][found[i]], 1);
      }
    }
  }
}

}  // namespace
}  // namespace culprit::run
