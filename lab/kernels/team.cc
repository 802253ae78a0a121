#include "lab/kernels/team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace culprit::lab {
namespace {

void pin_to(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // unpinned is still right
  int left = index % std::max(1, CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

}  // namespace

int usable_cpus() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

Team::Team(int threads) : next_(static_cast<std::size_t>(threads)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::int64_t Team::share_begin(std::int64_t share) const { return n_ * share / threads(); }

void Team::take_chunks(std::int64_t share) {
  const std::int64_t end = share_begin(share + 1);
  std::atomic<std::int64_t>& next = next_[static_cast<std::size_t>(share)];
  for (std::int64_t begin = next.fetch_add(chunk_); begin < end; begin = next.fetch_add(chunk_))
    (*work_)(begin, std::min(begin + chunk_, end));
}

void Team::serve(int index) {
  pin_to(index);
  std::uint64_t seen = 0;
  while (true) {
    int all = 0;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ends_ || pass_ != seen; });
      if (ends_) return;
      seen = pass_;
      all = threads();
    }
    if (ready_.fetch_add(1) + 1 == all) {
      start_ = Clock::now();
      ready_.fetch_add(1);  // one more than there are threads: go
    }
    while (ready_.load() <= all) std::this_thread::yield();
    for (int share = 0; share < all; ++share) take_chunks((index + share) % all);
    const std::lock_guard lock(mutex_);
    if (++done_ < all) continue;
    end_ = Clock::now();
    finished_.notify_one();
  }
}

double Team::run(std::int64_t n, std::int64_t chunk, const Work& work) {
  std::unique_lock lock(mutex_);
  n_ = n;
  chunk_ = chunk;
  work_ = &work;
  for (std::int64_t share = 0; share < threads(); ++share)
    next_[static_cast<std::size_t>(share)] = share_begin(share);
  ready_ = 0;
  done_ = 0;
  ++pass_;
  wake_.notify_all();
  finished_.wait(lock, [&] { return done_ == threads(); });
  return std::chrono::duration<double>(end_ - start_).count();
}

}  // namespace culprit::lab
