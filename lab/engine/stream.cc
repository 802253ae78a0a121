#include "lab/engine/stream.h"

#include <algorithm>

#include "culprit/profile.h"
#include "lab/engine/cores.h"
#include "lab/engine/spin.h"

namespace culprit::lab {
namespace {

// Whether `done` has reached `count`, though both may have wrapped around.
bool reached(std::uint32_t done, std::uint32_t count) {
  return static_cast<std::int32_t>(done - count) >= 0;
}

}  // namespace

Stream::Stream(int threads, Host host)
    : threads_(std::max(threads, 1)),
      slots_(std::make_unique<Slot[]>(kSlots)),
      leader_([this] { serve(); }) {
  started_.wait();
  std::vector<int> cores = usable_cores();
  const bool pinned = static_cast<std::size_t>(threads_) <= cores.size() && threads_ > 1;
  if (host == Host::kAnywhere || !pinned || cores.size() < 2) return;
  host_keeps_off_ = true;
  cores.erase(cores.begin());  // the leader's, as Workers pins it
  keep_this_thread_to(cores);
}

Stream::~Stream() {
  synchronize();
  stopping_.store(true);
  launched_.fetch_add(1);
  launched_.notify_one();
  leader_.join();
  if (host_keeps_off_) keep_this_thread_to(usable_cores());
}

Stream::Slot& Stream::next_slot() {
  wait_until_done(count_ - (kSlots - 1));
  return slots_[count_ % kSlots];
}

void Stream::publish() {
  launched_.store(++count_);
  launched_.notify_one();
}

void Stream::synchronize() { wait_until_done(count_); }

// All of done_ and awaited_ is in one order for both threads: either the leader sees what is
// awaited, or this thread that it is done.
void Stream::wait_until_done(std::uint32_t count) {
  if (reached(done_.load(std::memory_order_acquire), count)) return;
  awaited_.store(count);
  for (std::uint32_t done = done_.load(); !reached(done, count); done = done_.load())
    done_.wait(done);
}

void Stream::serve() {
  profile::name_thread("stream 0");
  keep_this_thread_to(usable_cores());  // not where the host keeps to because of another stream
  const bool own_cores = static_cast<std::size_t>(threads_) < usable_cores().size();
  const std::chrono::nanoseconds patience =
      own_cores ? std::chrono::nanoseconds(kDeviceSpin) : kSpin;
  Workers workers(threads_, patience);
  started_.count_down();
  for (std::uint32_t done = 0;;) {
    const auto called = [&] { return launched_.load(std::memory_order_acquire) != done; };
    // Who waits for this stream needs a core to go on: where there are as many threads as cores, ours.
    const bool all_done = awaited_.load(std::memory_order_relaxed) == done;
    if ((all_done && !own_cores) || !spin_until(called, patience)) launched_.wait(done);
    if (stopping_.load()) return;
    const Slot& slot = slots_[done % kSlots];
    slot.run(slot.work, workers);
    done_.store(++done);
    if (awaited_.load() == done) done_.notify_one();
  }
}

}  // namespace culprit::lab
