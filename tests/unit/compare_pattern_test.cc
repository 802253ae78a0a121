#include "compare/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "run_builder.h"

namespace culprit::compare {
namespace {

using Symbols = std::vector<std::uint32_t>;

std::string shape_of(
    const Symbols& symbols) {  // "1 2x8 3x8": each item's symbol and number of places
  std::string out;
  for (const auto& places : fold(symbols)) {
    if (!out.empty()) out += ' ';
    out += std::to_string(symbols[places.front()]);
    if (places.size() > 1) out += 'x' + std::to_string(places.size());
  }
  return out;
}

TEST(Fold, LayersBecomeOne) {
  Symbols step{9};
  for (int layer = 0; layer < 78; ++layer)
    for (const std::uint32_t symbol : {1U, 2U, 3U, 2U}) step.push_back(symbol);
  step.push_back(8);
  EXPECT_EQ(shape_of(step), "9 1x78 2x78 3x78 2x78 8");
}

TEST(Fold, RepeatsInsideRepeatsFoldAsWell) {
  Symbols step;
  for (int layer = 0; layer < 5; ++layer) {
    step.push_back(1);
    for (int expert = 0; expert < 8; ++expert)
      for (const std::uint32_t symbol : {2U, 3U}) step.push_back(symbol);
  }
  EXPECT_EQ(shape_of(step), "1x5 2x40 3x40");
}

TEST(Fold, DenseLayersInFrontStayApart) {
  Symbols step;
  for (int layer = 0; layer < 3; ++layer)
    for (const std::uint32_t symbol : {1U, 4U}) step.push_back(symbol);
  for (int layer = 0; layer < 20; ++layer)
    for (const std::uint32_t symbol : {1U, 5U, 6U}) step.push_back(symbol);
  EXPECT_EQ(shape_of(step), "1x3 4x3 1x20 5x20 6x20");
}

TEST(Fold, EveryPlaceIsInOneItemOfItsSymbol) {
  std::mt19937 draw(17);
  for (int round = 0; round < 300; ++round) {
    Symbols symbols(draw() % 60);
    for (std::uint32_t& symbol : symbols)
      symbol = static_cast<std::uint32_t>(draw() % (1U + static_cast<unsigned>(round) % 5));
    std::vector<int> seen(symbols.size(), 0);
    for (const auto& places : fold(symbols)) {
      for (const std::uint32_t place : places) {
        ++seen[place];
        EXPECT_EQ(symbols[place], symbols[places.front()]);
      }
    }
    EXPECT_EQ(seen, std::vector<int>(symbols.size(), 1));
  }
}

// 50,000 kernels, the layers of a large step: folded in a moment, not compared one with another.
TEST(Fold, ALargeStepIsCheap) {
  Symbols step;
  while (step.size() < 50'000)
    for (std::uint32_t symbol = 0; symbol < 40; ++symbol) step.push_back(symbol % 23);
  EXPECT_LE(fold(step).size(), 40u);
}

}  // namespace
}  // namespace culprit::compare
