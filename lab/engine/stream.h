// Stream: launched work runs in order on a thread of its own, the leader, while the thread that
// launched it goes on, as on a GPU. A launch is copied into one of kSlots slots of a ring: no
// allocation, no lock. The leader is worker 0 of its Workers; where nothing is left to do it spins
// briefly (longer where a core is left to the host), then sleeps. Who launches sleeps while he waits,
// for the cores are the workers'.
// One thread launches. What work points at must outlive it. Cost of a launch: about 0.1 us.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "lab/engine/workers.h"

namespace culprit::lab {

class Stream {
 public:
  static constexpr std::uint32_t kSlots = 1024;  // launches that may wait; a power of two
  static constexpr std::size_t kWorkBytes = 512 - 16;

  // `threads` as Workers has them. Where the host launches kernel by kernel it keeps off the leader's
  // core, if there is another: the two would take turns there, and the leader is pinned to it.
  enum class Host : std::uint8_t { kAnywhere, kBesideLeader };
  explicit Stream(int threads, Host host = Host::kAnywhere);
  ~Stream();  // when all is done
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int threads() const { return threads_; }

  // work(workers), on the leader. Waits where the ring is full.
  template <class Work>
  void launch(const Work& work) {
    static_assert(std::is_trivially_copyable_v<Work> && sizeof(Work) <= kWorkBytes &&
                  alignof(Work) <= kAlignment);
    Slot& slot = next_slot();
    new (slot.work) Work(work);
    slot.run = [](const std::byte* bytes, Workers& workers) {
      (*std::launder(reinterpret_cast<const Work*>(bytes)))(workers);
    };
    publish();
  }
  void synchronize();  // until all that was launched is done

 private:
  static constexpr std::size_t kAlignment = 16;
  struct Slot {
    void (*run)(const std::byte* work, Workers& workers) = nullptr;
    alignas(kAlignment) std::byte work[kWorkBytes];
  };

  Slot& next_slot();
  void publish();
  void wait_until_done(std::uint32_t count);
  void serve();

  int threads_;
  bool host_keeps_off_ = false;  // the leader's core
  std::unique_ptr<Slot[]> slots_;
  std::uint32_t count_ = 0;  // launched, as the launching thread counts; numbers wrap around
  alignas(64) std::atomic<std::uint32_t> launched_{0};  // the leader sleeps on it
  alignas(64) std::atomic<std::uint32_t> done_{0};      // the launching thread sleeps on it
  std::atomic<std::uint32_t> awaited_{0};               // wakes it when so many are done
  std::atomic<bool> stopping_{false};
  std::latch started_{1};  // the workers are there
  std::thread leader_;
};

}  // namespace culprit::lab
