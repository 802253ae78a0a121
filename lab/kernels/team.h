// Pinned threads for measuring: a pass runs a function over chunks of some work, each thread taking
// the next chunk when it is done with one, and takes as long as from the moment all were ready to
// the moment all are done. Threads that wait give their core away, so that a pass ends soon even
// where another process has one of the cores.
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

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::uint64_t pass_ = 0;
  bool ends_ = false;
  std::int64_t n_ = 0, chunk_ = 1;
  const Work* work_ = nullptr;
  std::atomic<std::int64_t> next_{0};
  std::atomic<int> ready_{0};
  int done_ = 0;
  Clock::time_point start_, end_;
  std::vector<std::thread> threads_;
};

}  // namespace culprit::lab
