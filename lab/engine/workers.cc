#include "lab/engine/workers.h"

#include <algorithm>

#include "lab/engine/cores.h"

namespace culprit::lab {

Workers::Workers(int threads, std::chrono::nanoseconds patience)
    : patience_(patience), stretches_(static_cast<std::size_t>(std::max(threads, 1))) {
  pinned_ = threads > 1 && static_cast<std::size_t>(threads) <= usable_cores().size();
  for (int thread = 1; thread < threads; ++thread)
    others_.emplace_back([this, thread] { serve(thread); });
  if (pinned_) keep_this_thread_to({usable_cores().front()});
}

Workers::~Workers() {
  stopping_.store(true);
  runs_.fetch_add(1);
  runs_.notify_all();
  for (std::thread& other : others_) other.join();
  if (pinned_) keep_this_thread_to(usable_cores());
}

void Workers::run_shared(std::int64_t pieces, const void* context, Call call) {
  if (pieces <= 0) return;
  context_ = context;
  call_ = call;
  pieces_ = static_cast<int>(pieces);
  done_.store(0, std::memory_order_relaxed);
  deal(pieces);
  runs_.fetch_add(1);
  runs_.notify_all();
  take_pieces(0);
  while (!spin_until([&] { return done_.load(std::memory_order_acquire) == pieces_; })) {
    const int seen = done_.load(std::memory_order_acquire);
    if (seen != pieces_) done_.wait(seen);
  }
}

// From here on whoever comes by may take pieces; what they need to know has been written.
void Workers::deal(std::int64_t pieces) {
  const std::int64_t count = threads();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto first = static_cast<std::uint64_t>(pieces * i / count);
    const auto end = static_cast<std::uint64_t>(pieces * (i + 1) / count);
    stretches_[static_cast<std::size_t>(i)].left.store(end << 32 | first,
                                                       std::memory_order_release);
  }
}

// Does the pieces of a stretch until none is left; how many these were.
int Workers::walk(Stretch& stretch, bool own, int thread) {
  constexpr std::uint64_t kOneOffTheBack = std::uint64_t{1} << 32;
  int done = 0;
  std::uint64_t seen = stretch.left.load(std::memory_order_relaxed);
  while ((seen & 0xffffffffU) < seen >> 32) {
    const std::uint64_t then = own ? seen + 1 : seen - kOneOffTheBack;
    if (!stretch.left.compare_exchange_weak(seen, then, std::memory_order_acquire,
                                            std::memory_order_relaxed))
      continue;
    const std::uint64_t piece = own ? seen & 0xffffffffU : then >> 32;
    call_(context_, static_cast<std::int64_t>(piece), thread);
    ++done;
    seen = stretch.left.load(std::memory_order_relaxed);
  }
  return done;
}

void Workers::take_pieces(int thread) {
  const std::size_t count = stretches_.size();
  int mine = 0;
  for (std::size_t i = 0; i < count; ++i)
    mine += walk(stretches_[(static_cast<std::size_t>(thread) + i) % count], i == 0, thread);
  if (mine == 0) return;
  const int all = pieces_;  // before the last of them is reported: then the next run may begin
  const int before = done_.fetch_add(mine, std::memory_order_acq_rel);
  if (before + mine == all) done_.notify_one();
}

void Workers::serve(int thread) {
  if (pinned_) keep_this_thread_to({usable_cores()[static_cast<std::size_t>(thread)]});
  while (!stopping_.load(std::memory_order_relaxed)) {
    const int seen = runs_.load(std::memory_order_acquire);
    take_pieces(thread);
    const auto called = [&] { return runs_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(called, patience_)) runs_.wait(seen);
  }
}

}  // namespace culprit::lab
