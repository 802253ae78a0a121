// Pinned threads for measuring: a pass runs a function over chunks of some work and takes as long as
// from the moment all threads were ready to the moment all are done. A thread takes the chunks of its
// own share in order, which memory likes best, then those that others have not come to yet: a thread
// whose core is lost to another process holds up one chunk, not its share. Threads that wait give
// their core away.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace culprit::lab {

int usable_cpus();  // that this process may run on

class Team {
 public:
  explicit Team(int threads);  // thread i runs on the i-th CPU of those, round and round
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  // work(begin, end) over [0, n) in chunks; the seconds that it took.
  using Work = std::function<void(std::int64_t begin, std::int64_t end)>;
  double run(std::int64_t n, std::int64_t chunk, const Work& work);

 private:
  using Clock = std::chrono::steady_clock;
  void serve(int index);
  void take_chunks(std::int64_t share);
  std::int64_t share_begin(std::int64_t share) const;

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::uint64_t pass_ = 0;
  bool ends_ = false;
  std::int64_t n_ = 0, chunk_ = 1;
  const Work* work_ = nullptr;
  std::vector<std::atomic<std::int64_t>> next_;  // of each share
  std::atomic<int> ready_{0};
  int done_ = 0;
  Clock::time_point start_, end_;
  std::vector<std::thread> threads_;
};

}  // namespace culprit::lab
