// HostView: the API calls of each host thread in time order, which of them wait for the device, and
// how fast the thread launches. Built in O(calls) where calls come in time order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "run/run.h"

namespace culprit::evidence {

// True for calls that return only when work of the device is done: cudaStreamSynchronize and its
// kin, blocking copies, frees. CUDA and HIP, runtime and driver spellings.
bool waits_by_name(std::string_view api);

class HostView {
 public:
  explicit HostView(const run::Run& run);
  // The last call of `thread` that began at or before `t`; invalid if there is none.
  store::CallRow last_begun(store::ThreadId thread, Nanos t) const;
  // By name, or an asynchronous copy that pageable memory makes synchronous.
  bool waits(store::CallRow call) const { return waits_[call.index]; }
  // Longest stretch of [from, to] that `thread` spent outside every call.
  Nanos longest_silence(store::ThreadId thread, Nanos from, Nanos to) const;
  // Whether a graph launch whose kernels were not recorded lies between two calls of one thread.
  bool unrecorded_graph_between(store::CallRow first, store::CallRow last) const;
  // The same for launches of single kernels; and whether one follows a call.
  bool unrecorded_kernel_between(store::CallRow first, store::CallRow last) const;
  bool unrecorded_kernel_behind(store::CallRow call) const;
  // Median time from one launch to the next on a thread; 0 with fewer than two launches.
  Nanos launch_spacing() const { return launch_spacing_; }
  // Median duration of a call that launched one activity; 0 without launches.
  Nanos launch_cost() const { return launch_cost_; }
  // The calls of `thread` that begin in [from, to), in time order.
  std::span<const store::CallRow> calls_of(store::ThreadId thread, Nanos from, Nanos to) const;
  std::size_t threads() const { return starts_.size() - 1; }
  // A launch that blocked: it took far longer than launches of one activity usually do, because the
  // launch queue was full.
  bool blocked(store::CallRow call) const;
  // Part of [from, to) that `thread` had for itself: without calls that wait for the device, and
  // without launches that block because the launch queue is full.
  Nanos own_time(store::ThreadId thread, Nanos from, Nanos to) const;
  Nanos end(store::CallRow call) const;

 private:
  static constexpr std::uint8_t kMany = 2;
  enum : std::uint8_t { kRecorded, kGraph, kKernel };
  std::pair<std::size_t, std::size_t> rows_of(store::ThreadId thread) const;
  std::size_t first_after(store::ThreadId thread, Nanos t) const;
  bool any_between(const std::vector<std::size_t>& places, store::CallRow first,
                   store::CallRow last) const;
  void order_by_thread();
  void find_waiting();
  void measure_launches();

  const run::Run& run_;
  std::vector<store::CallRow> by_thread_;  // grouped by thread, in time order inside each
  std::vector<std::size_t> starts_;  // first place of thread i in by_thread_; one more at the end
  std::vector<bool> waits_;          // per call
  std::vector<std::uint8_t> launched_;  // per call: activities it launched; kMany: two or more
  std::vector<std::size_t> unrecorded_graphs_, unrecorded_kernels_;  // places in by_thread_
  Nanos launch_spacing_ = 0;
  Nanos launch_cost_ = 0;
};

}  // namespace culprit::evidence
