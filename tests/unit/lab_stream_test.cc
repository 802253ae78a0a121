// The stream: work in the order of its launches, each once, and waits that wait.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "lab/engine/cores.h"
#include "lab/engine/launch.h"
#include "lab/engine/stream.h"

namespace culprit::lab {
namespace {

TEST(Stream, RunsAllInOrder) {
  for (const int threads : {1, 2, 3}) {
    Stream stream(threads);
    EXPECT_EQ(stream.threads(), threads);
    std::vector<int> order;  // of the stream, until it is waited for
    std::vector<int>* const to = &order;
    constexpr int kMany = 3 * static_cast<int>(Stream::kSlots) + 7;  // the ring is full at times
    for (int i = 0; i < kMany; ++i) stream.launch([to, i](Workers&) { to->push_back(i); });
    stream.synchronize();
    ASSERT_EQ(order.size(), static_cast<std::size_t>(kMany));
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(Stream, GivesTheHostItsCoresBack) {
  const std::vector<int> before = cores_of_this_thread();
  {
    Stream stream(static_cast<int>(before.size()), Stream::Host::kBesideLeader);
    EXPECT_EQ(cores_of_this_thread().size(), before.size() > 1 ? before.size() - 1 : 1);
  }
  EXPECT_EQ(cores_of_this_thread(), before);
}

// A second stream has as many cores as the first, though the host keeps to fewer by then.
TEST(Stream, LeavesAllCoresToTheNext) {
  const auto all = static_cast<int>(usable_cores().size());
  const auto cores_of_leader = [](Stream& stream) {
    std::vector<int> cores;
    std::vector<int>* const to = &cores;
    stream.launch([to](Workers&) { *to = cores_of_this_thread(); });
    stream.synchronize();
    return cores;
  };
  Stream first(all, Stream::Host::kBesideLeader);
  Stream second(all, Stream::Host::kBesideLeader);
  EXPECT_EQ(cores_of_leader(second), cores_of_leader(first));
  Stream third(1);
  EXPECT_EQ(cores_of_leader(third), usable_cores());
}

// The thread that launches goes on while the stream works, and waits only when it says so.
TEST(Stream, TheHostRunsAhead) {
  Stream stream(1);
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  stream.launch([&go](Workers&) { go.wait(false); });
  for (int i = 0; i < 100; ++i) stream.launch([&done](Workers&) { ++done; });
  EXPECT_EQ(done.load(), 0);
  go.store(true);
  go.notify_one();
  stream.synchronize();
  EXPECT_EQ(done.load(), 100);
}

// Rounds in which either side may be asleep when the other comes.
TEST(Stream, WakesWhoSleeps) {
  Stream stream(2);
  std::atomic<int> done{0};
  for (int round = 0; round < 2000; ++round) {
    const int count = round % 3;
    for (int i = 0; i < count; ++i)
      stream.launch([&done](Workers& workers) {
        workers.run(3, [&done](std::int64_t, int) { done.fetch_add(1); });
      });
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    const int before = done.load();
    stream.synchronize();
    ASSERT_LE(before, done.load());
  }
  EXPECT_EQ(done.load(), 3 * (667 + 2 * 666));  // launches of three pieces each
}

// What is launched is copied: the launching function's own values may be gone.
TEST(Launcher, CopiesWhatItLaunches) {
  Stream stream(2);
  Launcher launch(stream);
  std::vector<std::int64_t> out(1000);
  std::int64_t* const to = out.data();
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::array<std::int64_t, 8> values{i, i, i, i, i, i, i, i};
    launch({.kernel = "fill", .symbol = "fill_kernel"}, 8, [=](std::int64_t piece, int) {
      if (piece == 7) to[i] = values[static_cast<std::size_t>(piece)];
    });
  }
  launch.synchronize();
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i);
}

TEST(Launcher, AGraphRunsTheWalkOnTheStream) {
  Stream stream(2);
  Launcher launch(stream), inner(stream);
  std::vector<int> order;
  std::vector<int>* const to = &order;
  for (int i = 0; i < 3; ++i) {
    launch.graph(inner, [&inner, to, i] {
      for (int k = 0; k < 4; ++k)
        inner({.kernel = "k", .symbol = "k_kernel"}, 1,
              [=](std::int64_t, int) { to->push_back(10 * i + k); });
    });
  }
  launch.synchronize();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
}

// The number of pieces and the bytes may be results of the kernel before.
TEST(Launcher, PreparesOnTheStream) {
  struct Seen : Recorder {
    std::int64_t read = 0;
    void launched(const Launch& launch, Nanos, Nanos) override { read += launch.read; }
  } seen;
  Stream stream(2);
  Launcher launch(stream);
  launch.set_recorder(&seen);
  std::int64_t count = 0;
  std::atomic<int> pieces{0};
  launch({.kernel = "count", .symbol = "count_kernel"}, 1,
         [&count](std::int64_t, int) { count = 5; });
  launch(
      {.kernel = "use", .symbol = "use_kernel"},
      [&count](Launch& its) {
        its.read = 10 * count;
        return count;
      },
      [&pieces](std::int64_t, int) { pieces.fetch_add(1); });
  launch.synchronize();
  EXPECT_EQ(pieces.load(), 5);
  EXPECT_EQ(seen.read, 50);
}

}  // namespace
}  // namespace culprit::lab
