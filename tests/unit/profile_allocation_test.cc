// A recorded step allocates nothing once its threads have been seen: counted by an operator new of
// this program's own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <semaphore>
#include <thread>

#include "unit/profile_trace.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

// Out of line: a compiler that sees `free` behind `new` takes them for a mismatch.
[[gnu::noinline]] void release(void* block) noexcept { std::free(block); }

void* counted_or_throw(std::size_t size) {
  if (void* block = counted(size)) return block;
  throw std::bad_alloc();
}
}  // namespace

// All forms, so that none is freed by another allocator than its own.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }

namespace culprit::profile {
namespace {

TEST(Allocation, NoneWithinARecordedStep) {
  const Folder folder;
  constexpr int kWarmup = 2, kSteps = 6;
  std::atomic<std::int64_t> in_steps{0};
  Session session(options_for(folder, kWarmup, kSteps + 1));  // its last step wakes the writer
  std::binary_semaphore go(0), done(0);
  Ticket ticket;
  std::atomic<bool> stop{false};
  std::thread stream([&] {
    for (go.acquire(); !stop.load(); go.acquire()) {
      { const Kernel kernel(ticket, "k", {.stream = 1, .bytes = 64}); }
      done.release();
    }
  });
  for (int i = 0; i < kWarmup + kSteps; ++i) {
    const std::int64_t before = allocations.load();
    {
      const Step step({.batch = 8, .tokens = 8});
      for (int k = 0; k < 200; ++k) {
        const Op op("aten::mm", kBf16(8, 512), kBf16(512, 512));
        {
          const Launch launch;
          ticket = launch.ticket();
        }
        go.release();
        done.acquire();
        const Wait wait;
      }
    }
    if (i >= kWarmup) in_steps += allocations.load() - before;
  }
  stop = true;
  go.release();
  stream.join();
  const Report report = session.finish();
  EXPECT_EQ(report.steps, kSteps) << report.summary;
  EXPECT_EQ(in_steps.load(), 0);
}

TEST(Allocation, NoneWhileNothingIsRecorded) {
  const std::int64_t before = allocations.load();
  for (int i = 0; i < 100; ++i) {
    const Step step({.batch = 8});
    const Op op("aten::mm", kBf16(8, 512), kBf16(512, 512));
    run_kernel("k");
  }
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace culprit::profile
