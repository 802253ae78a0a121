#include "compare/align.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::compare {
namespace {

using known::Owner;

Mark mark(std::string_view name, Owner role, store::Dim3 grid = {1, 1, 1},
          std::int64_t calls = 32) {
  return {name, name.substr(0, name.find('<')), {}, role, grid, calls};
}

std::string text_of(const std::vector<Pair>& pairs, const std::vector<Mark>& before,
                    const std::vector<Mark>& after) {
  std::string out;
  for (const Pair& pair : pairs) {
    if (!out.empty()) out += ' ';
    out += pair.before < 0 ? "-" : before[static_cast<std::size_t>(pair.before)].name;
    out += '=';
    out += pair.after < 0 ? "-" : after[static_cast<std::size_t>(pair.after)].name;
  }
  return out;
}

std::string aligned(const std::vector<Mark>& before, const std::vector<Mark>& after) {
  return text_of(align(before, before.size(), after, after.size()), before, after);
}

TEST(Align, ARenamedKernelKeepsItsPlace) {
  const std::vector<Mark> before{mark("n", Owner::kNorm), mark("q", Owner::kGemm),
                                 mark("old", Owner::kAttention), mark("o", Owner::kGemm),
                                 mark("custom", Owner::kComm)};
  std::vector<Mark> after = before;
  after[2].name = after[2].base = "new";
  EXPECT_EQ(aligned(before, after), "n=n q=q old=new o=o custom=custom");
  after[4].name = after[4].base = "nccl";
  EXPECT_EQ(aligned(before, after), "n=n q=q old=new o=o custom=nccl");
}

TEST(Align, AnotherRoleIsNoCounterpart) {
  const std::vector<Mark> before{mark("a", Owner::kNorm), mark("b", Owner::kCast)};
  const std::vector<Mark> after{mark("a", Owner::kNorm), mark("c", Owner::kCopy)};
  const std::string text = aligned(before, after);
  EXPECT_TRUE(text == "a=a b=- -=c" || text == "a=a -=c b=-") << text;
}

TEST(Align, PlacesOfOneNameAreToldApartByGridAndOrder) {
  const std::vector<Mark> before{mark("g", Owner::kGemm, {8, 1, 1}),
                                 mark("g", Owner::kGemm, {64, 1, 1})};
  const std::vector<Mark> after{mark("g", Owner::kGemm, {64, 1, 1})};
  EXPECT_EQ(aligned(before, after), "g=- g=g");
  const std::vector<Pair> pairs = align(before, 2, after, 1);
  EXPECT_EQ(pairs.back().before, 1);
  EXPECT_TRUE(pairs.back().anchor);
}

TEST(Align, WhatMovedIsPairedByItsName) {
  const std::vector<Mark> before{mark("a", Owner::kNorm), mark("b", Owner::kGemm),
                                 mark("c", Owner::kCast)};
  const std::vector<Mark> after{mark("c", Owner::kCast), mark("a", Owner::kNorm),
                                mark("b", Owner::kGemm)};
  EXPECT_EQ(aligned(before, after), "c=c a=a b=b");
}

TEST(Align, AStepThatIsCutElsewhereKeepsItsPairs) {
  const std::vector<Mark> before{mark("custom", Owner::kComm), mark("n", Owner::kNorm),
                                 mark("g", Owner::kGemm)};
  std::vector<Mark> after{mark("n", Owner::kNorm), mark("g", Owner::kGemm),
                          mark("nccl", Owner::kComm)};
  EXPECT_EQ(aligned(before, after), "custom=nccl n=n g=g");
  after.back().calls = 1;  // outside the layers: something else
  EXPECT_EQ(aligned(before, after), "custom=- n=n g=g -=nccl");
}

// Every kernel of both sides is in one pair, pairs share a role or a name, and swapped sides give
// swapped pairs.
TEST(Align, HoldsItsPromisesOnRandomLists) {
  std::mt19937 draw(7);
  const std::vector<std::string> names{"a", "b", "c<1>", "c<2>", "d", "e"};
  const auto list = [&] {
    std::vector<Mark> marks(draw() % 12);
    for (Mark& each : marks) {
      const std::size_t n = draw() % names.size();
      each =
          mark(names[n], static_cast<Owner>(n / 2), {static_cast<std::int32_t>(draw() % 3), 1, 1},
               1 + static_cast<std::int64_t>(draw() % 4));
    }
    return marks;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<Mark> before = list(), after = list();
    const std::vector<Pair> pairs = align(before, before.size(), after, after.size());
    std::vector<int> seen_before(before.size()), seen_after(after.size());
    for (const Pair& pair : pairs) {
      if (pair.before >= 0) ++seen_before[static_cast<std::size_t>(pair.before)];
      if (pair.after >= 0) ++seen_after[static_cast<std::size_t>(pair.after)];
      if (pair.before < 0 || pair.after < 0) continue;
      const Mark &a = before[static_cast<std::size_t>(pair.before)],
                 &b = after[static_cast<std::size_t>(pair.after)];
      EXPECT_TRUE(a.role == b.role || a.name == b.name);
      EXPECT_EQ(pair.anchor, a.name == b.name);
    }
    EXPECT_EQ(seen_before, std::vector<int>(before.size(), 1));
    EXPECT_EQ(seen_after, std::vector<int>(after.size(), 1));
    std::vector<Pair> swapped = align(after, after.size(), before, before.size());
    ASSERT_EQ(swapped.size(), pairs.size());
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      if (before == after) break;
      EXPECT_EQ(swapped[p].before, pairs[p].after);
      EXPECT_EQ(swapped[p].after, pairs[p].before);
    }
  }
}

}  // namespace
}  // namespace culprit::compare
