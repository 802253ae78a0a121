#include "lab/engine/workers.h"

#include <algorithm>
#include <chrono>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace culprit::lab {
namespace {

// Longer than the serial work between two runs of a step, shorter than a scheduler's time slice.
constexpr auto kSpin = std::chrono::microseconds(50);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()`; false: it took too long.
template <class Ready>
bool spin_until(const Ready& ready) {
  constexpr int kTriesPerLook = 64;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kTriesPerLook; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() - start < kSpin);
  return false;
}

#if defined(__linux__)
void pin(pthread_t thread, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<unsigned>(core), &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}
#endif

}  // namespace

std::vector<int> usable_cores() {
  std::vector<int> cores;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
#else
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core)
    cores.push_back(static_cast<int>(core));
#endif
  return cores;
}

Workers::Workers(int threads) {
  for (int thread = 1; thread < threads; ++thread)
    others_.emplace_back([this, thread] { serve(thread); });
#if defined(__linux__)
  const std::vector<int> cores = usable_cores();
  if (others_.empty() || static_cast<std::size_t>(threads) > cores.size()) return;
  cores_ = cores;
  pin(pthread_self(), {cores[0]});
  for (std::size_t i = 0; i < others_.size(); ++i) pin(others_[i].native_handle(), {cores[i + 1]});
#endif
}

Workers::~Workers() {
  stopping_.store(true);
  runs_.fetch_add(1);
  runs_.notify_all();
  for (std::thread& other : others_) other.join();
#if defined(__linux__)
  if (!cores_.empty()) pin(pthread_self(), cores_);
#endif
}

void Workers::run_shared(std::int64_t pieces, const void* context, Call call) {
  if (pieces <= 0) return;
  context_ = context;
  call_ = call;
  done_.store(0, std::memory_order_relaxed);
  tickets_.store(static_cast<std::uint64_t>(pieces) << 32, std::memory_order_release);
  runs_.fetch_add(1);
  runs_.notify_all();
  take_pieces(0);
  const auto all = static_cast<int>(pieces);
  while (!spin_until([&] { return done_.load(std::memory_order_acquire) == all; })) {
    const int seen = done_.load(std::memory_order_acquire);
    if (seen != all) done_.wait(seen);
  }
}

// How many pieces to take at once: ever fewer, so that all threads are done at about the same time.
std::uint64_t Workers::share(std::uint64_t left) const {
  constexpr int kSharesEach = 2;
  return std::max<std::uint64_t>(left / static_cast<std::uint64_t>(kSharesEach * threads()), 1);
}

void Workers::take_pieces(int thread) {
  int mine = 0;
  std::uint64_t pieces = 0;
  std::uint64_t seen = tickets_.load(std::memory_order_relaxed);
  while ((seen & 0xffffffffU) < seen >> 32) {
    const std::uint64_t first = seen & 0xffffffffU;
    const std::uint64_t count = share((seen >> 32) - first);
    if (!tickets_.compare_exchange_weak(seen, seen + count, std::memory_order_acquire,
                                        std::memory_order_relaxed))
      continue;
    pieces = seen >> 32;
    for (std::uint64_t piece = first; piece < first + count; ++piece)
      call_(context_, static_cast<std::int64_t>(piece), thread);
    mine += static_cast<int>(count);
    seen = tickets_.load(std::memory_order_relaxed);
  }
  if (mine == 0) return;
  const int before = done_.fetch_add(mine, std::memory_order_acq_rel);
  if (before + mine == static_cast<int>(pieces)) done_.notify_one();
}

void Workers::serve(int thread) {
  while (!stopping_.load(std::memory_order_relaxed)) {
    const int seen = runs_.load(std::memory_order_acquire);
    take_pieces(thread);
    const auto called = [&] { return runs_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(called)) runs_.wait(seen);
  }
}

}  // namespace culprit::lab
