// Workers: the threads of a decode step, one per core. Work is divided into small pieces. Each thread
// walks a stretch of neighbours from its front, for memory that is read in one stretch comes faster;
// then it takes from the backs of the others' stretches, so that a thread that loses its core to another
// process holds up one piece. A run ends when all pieces are done, not when all threads have come by.
// Waiting spins briefly, then sleeps. Nothing is allocated after construction. Cost of a run: about 1 us
// while all are awake.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lab/engine/spin.h"

namespace culprit::lab {

class Workers {
 public:
  // The caller's thread is one of `threads`, until the end of this object. Each is pinned to a core
  // of its own where there are enough of them.
  // `patience`: how long the others spin for the next run before they sleep.
  explicit Workers(int threads, std::chrono::nanoseconds patience = kSpin);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(others_.size()) + 1; }

  // body(piece, thread) once for each piece of [0, pieces), pieces < 2^31; returns when all are done.
  // One run at a time, always from the same thread.
  template <class Body>
  void run(std::int64_t pieces, const Body& body) {
    if (pieces == 1 || others_.empty()) {
      for (std::int64_t piece = 0; piece < pieces; ++piece) body(piece, 0);
      return;
    }
    run_shared(pieces, &body, [](const void* context, std::int64_t piece, int thread) {
      (*static_cast<const Body*>(context))(piece, thread);
    });
  }

 private:
  using Call = void (*)(const void* context, std::int64_t piece, int thread);

  // The pieces of one thread that nobody has taken: the end in the upper half, the first in the lower.
  struct alignas(64) Stretch {
    std::atomic<std::uint64_t> left{0};
  };

  void run_shared(std::int64_t pieces, const void* context, Call call);
  void deal(std::int64_t pieces);
  int walk(Stretch& stretch, bool own, int thread);
  void take_pieces(int thread);
  void serve(int thread);

  std::vector<std::thread> others_;
  std::chrono::nanoseconds patience_;
  bool pinned_ = false;
  // Of the run that goes on. Read only by who holds a piece of it, and so keeps it from ending.
  const void* context_ = nullptr;
  Call call_ = nullptr;
  int pieces_ = 0;
  std::vector<Stretch> stretches_;  // one per thread
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::atomic<int> runs_{0};  // counts up; sleepers wait for it
  std::atomic<bool> stopping_{false};
};

}  // namespace culprit::lab
