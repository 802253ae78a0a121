// The measuring of memory: that work is done once, whoever does it, and that rates are of what moved.
#include "lab/kernels/roof.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace culprit::lab {
namespace {

TEST(Team, DoesEachPieceOnce) {
  for (const int threads : {1, 2, 5}) {
    Team team(threads);
    for (const std::int64_t n : {0, 1, 7, 1000}) {
      for (const std::int64_t chunk : {1, 3, 5000}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(n));
        const double seconds = team.run(n, chunk, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_LE(end - begin, chunk);
          for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
        });
        EXPECT_GE(seconds, 0);
        for (const auto& times : done) ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(Pages, BeginAtHugePagesAndHoldWhatIsWritten) {
  auto pages = Pages::reserve(3 << 20);
  ASSERT_TRUE(pages.ok());
  EXPECT_EQ(pages->bytes(), 4 << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->data()) % (2 << 20), 0U);
  pages->data()[pages->bytes() - 1] = std::byte{7};
  const Pages moved = std::move(*pages);
  EXPECT_EQ(moved.data()[moved.bytes() - 1], std::byte{7});
}

TEST(Pages, MoreThanThereIsIsAnError) {
  const auto pages = Pages::reserve(std::int64_t{1} << 60);
  ASSERT_FALSE(pages.ok());
  EXPECT_FALSE(pages.error().hint.empty());
}

TEST(Roof, MeasuresEveryWay) {
  Team team(3);  // shares of no round size
  auto roof = Roof::prepare(team, best_isa(), 4 << 20);
  ASSERT_TRUE(roof.ok());
  EXPECT_EQ(roof->bytes(), 4 << 20);
  EXPECT_EQ(roof->best(Move::kCopy), 0);
  for (int pass = 0; pass < 3; ++pass) roof->pass();
  for (const Roof::Way& way : roof->ways()) {
    EXPECT_EQ(way.rates.size(), 3U);
    for (const double rate : way.rates) EXPECT_GT(rate, 0);
  }
  for (const Move move : {Move::kRead, Move::kWrite, Move::kCopy}) EXPECT_GT(roof->best(move), 0);
}

TEST(Roof, KnowsTheCacheOrSaysThatItDoesNot) {
  const auto cache = last_level_cache();
  if (cache.ok())
    EXPECT_GE(*cache, 64 << 10);
  else
    EXPECT_FALSE(cache.error().hint.empty());
}

}  // namespace
}  // namespace culprit::lab
