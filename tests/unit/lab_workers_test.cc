// The thread pool and the cutting of work: each piece once, whatever the threads do.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "lab/engine/cores.h"
#include "lab/engine/cut.h"
#include "lab/engine/workers.h"

namespace culprit::lab {
namespace {

TEST(Workers, RunEachPieceOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    Workers workers(threads);
    ASSERT_EQ(workers.threads(), threads);
    for (const std::int64_t pieces : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(pieces));
      workers.run(pieces, [&](std::int64_t piece, int thread) {
        EXPECT_TRUE(thread >= 0 && thread < threads);
        times[static_cast<std::size_t>(piece)].fetch_add(1);
      });
      for (const auto& count : times) EXPECT_EQ(count.load(), 1);
    }
  }
}

// Runs that follow each other at once are where a late thread could take a piece of the wrong one.
TEST(Workers, KeepRunsApart) {
  Workers workers(4);
  for (std::int64_t round = 0; round < 20000; ++round) {
    std::atomic<std::int64_t> sum{0};
    const std::int64_t pieces = 2 + round % 5;
    workers.run(pieces, [&](std::int64_t piece, int) { sum.fetch_add(round + piece); });
    ASSERT_EQ(sum.load(), pieces * round + pieces * (pieces - 1) / 2);
  }
}

TEST(Workers, GiveTheCallerItsCoresBack) {
  const std::vector<int> before = cores_of_this_thread();
  { Workers workers(static_cast<int>(before.size())); }
  EXPECT_EQ(cores_of_this_thread(), before);
}

TEST(Cut, NumbersThePartsOfAllItems) {
  Carver counter(nullptr);
  Cut cut;
  cut.carve(counter, 4);
  auto arena = Arena::make(counter.bytes(), "test");
  ASSERT_TRUE(arena.ok());
  Carver carver(arena->data());
  cut.carve(carver, 4);
  cut.add(5, 2);
  cut.add(0, 3);
  cut.add(3, 3);
  cut.add(1, 8);
  ASSERT_EQ(cut.pieces(), 5);
  const std::int64_t expected[][3] = {{0, 0, 2}, {0, 2, 4}, {0, 4, 5}, {2, 0, 3}, {3, 0, 1}};
  for (std::int64_t piece = 0; piece < 5; ++piece) {
    const Cut::Part part = cut[piece];
    EXPECT_EQ(part.item, expected[piece][0]);
    EXPECT_EQ(part.begin, expected[piece][1]);
    EXPECT_EQ(part.end, expected[piece][2]);
  }
}

TEST(Arena, RefusesMoreThanTheMachineHas) {
  const auto arena = Arena::make(std::int64_t{1} << 60, "a pool");
  ASSERT_FALSE(arena.ok());
  EXPECT_NE(arena.error().what.find("a pool takes"), std::string::npos);
  EXPECT_FALSE(arena.error().hint.empty());
}

}  // namespace
}  // namespace culprit::lab
