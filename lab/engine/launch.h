// The one door through which every kernel of a step goes: what it is called, what it works on, the
// bytes it must move, when it ran. The host's thread launches, the Stream runs; what is launched is
// copied, so bodies capture by value, and what they point at belongs to the engine.
// A Recorder sees all kernels (the bench's table), culprit::profile records both sides as a trace.
// In a graph the host launches once: the stream walks through the step and runs each kernel itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"
#include "culprit/profile.h"
#include "lab/engine/faults.h"
#include "lab/engine/stream.h"

namespace culprit::lab {

// What ranks tell each other in a launch, but for how much: that is the launch's shape.
struct Sending {
  profile::Name collective = {};  // as c10d calls it: "allreduce"
  std::int64_t ranks = 1;
  profile::Name group = {}, members = {};
};

struct Launch {
  std::string_view kernel =
      {};                     // its role: "q_b", "pool-cast", "expert gate_up"; outlives the engine
  profile::Name symbol = {};  // what runs, as a profiler names it: "rms_norm_kernel"
  std::string_view format = {};  // of what it mainly reads: "nvfp4", "e4m3"; empty: plain floats
  int layer = -1;                // -1: of no layer
  std::int64_t read = 0, written = 0;           // bytes, each counted once
  std::int64_t tokens = 0, rows = 0, cols = 0;  // its shape: [tokens, cols] in, [tokens, rows] out
  const Sending* sending = nullptr;             // of a collective; outlives the engine's last step
};

// Work on `tokens` rows of `width` floats that are read and written once.
inline Launch row_launch(std::string_view kernel, profile::Name symbol, int layer,
                         std::int64_t tokens, std::int64_t width) {
  const std::int64_t bytes = tokens * width * 4;
  return {kernel, symbol, {}, layer, bytes, bytes, tokens, width, width};
}

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Called by the stream's thread, between kernels; must not allocate.
  virtual void launched(const Launch& launch, Nanos start, Nanos end) = 0;
};

class Launcher {
 public:
  explicit Launcher(Stream& stream, const Faults& faults = {}) : stream_(stream), faults_(faults) {}
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }  // null: nobody looks
  int threads() const { return stream_.threads(); }
  const Faults& faults() const { return faults_; }

  // body(piece, thread) for each piece of [0, pieces).
  template <class Body>
  void operator()(const Launch& launch, std::int64_t pieces, const Body& body) {
    (*this)(
        launch, [pieces](Launch&) { return pieces; }, body);
  }
  // The same where results of earlier kernels decide: prepare(launch) completes the launch's shape
  // and bytes on the stream, right before it, and gives the number of pieces.
  template <class Prepare, class Body>
  requires std::is_invocable_r_v<std::int64_t, const Prepare&, Launch&>
  void operator()(const Launch& launch, const Prepare& prepare, const Body& body) {
    if (mode_ == Mode::kCounting) {
      ++works_;
    } else if (mode_ == Mode::kInGraph) {
      run(*workers_, launch, ticket_, prepare, body);
    } else {
      busy(faults_.host_delay);
      const profile::Launch call;
      stream_.launch([this, launch, prepare, body, ticket = call.ticket()](Workers& workers) {
        run(workers, launch, ticket, prepare, body);
      });
    }
  }
  // Bytes between host and device, in the order of the stream. `what`: profile::kCopyIn, kCopyOut.
  void copy(profile::Name what, void* to, const void* from, std::int64_t bytes);
  // To memory that the device cannot reach by itself: the host stands in the call until all is there.
  void copy_to_pageable(void* to, const void* from, std::int64_t bytes);
  // One launch of all kernels that walk() launches through `inner`, which nobody else uses meanwhile.
  template <class Walk>
  void graph(Launcher& inner, const Walk& walk) {
    std::uint32_t works = 0;
    if (profile::recording()) works = inner.count(walk);
    busy(faults_.host_delay);
    const profile::Launch call(profile::kLaunchGraph, works);
    stream_.launch([&inner, walk, ticket = call.ticket()](Workers& workers) {
      inner.walk_in_graph(walk, ticket, workers);
    });
  }
  void synchronize();
  static void busy(Nanos time);  // the calling thread works so long
  // Whether operators are recorded: not while a graph is counted or replayed.
  bool records_ops() const { return mode_ == Mode::kEager && profile::recording(); }

  static Nanos now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  enum class Mode : std::uint8_t { kEager, kCounting, kInGraph };

  template <class Walk>
  std::uint32_t count(const Walk& walk) {
    mode_ = Mode::kCounting;
    works_ = 0;
    walk();
    mode_ = Mode::kEager;
    return works_;
  }
  template <class Walk>
  void walk_in_graph(const Walk& walk, profile::Ticket ticket, Workers& workers) {
    mode_ = Mode::kInGraph;
    ticket_ = ticket;
    workers_ = &workers;
    walk();
    mode_ = Mode::kEager;
  }
  template <class Prepare, class Body>
  void run(Workers& workers, Launch launch, profile::Ticket ticket, const Prepare& prepare,
           const Body& body) {
    const std::int64_t pieces = prepare(launch);
    const auto blocks = static_cast<std::uint32_t>(pieces);
    const Nanos start = recorder_ != nullptr ? now() : 0;
    const profile::Work work{
        .grid = {blocks, 1, 1}, .block = {1, 1, 1}, .bytes = launch.read + launch.written};
    if (launch.sending != nullptr) {
      const profile::Collective span(ticket, launch.symbol, message_of(launch), work);
      workers.run(pieces, body);
    } else {
      const profile::Kernel span(ticket, launch.symbol, work);
      workers.run(pieces, body);
    }
    if (recorder_ != nullptr) recorder_->launched(launch, start, now());
  }
  static profile::Message message_of(const Launch& launch);

  Stream& stream_;
  Faults faults_;
  Recorder* recorder_ = nullptr;
  // Of the thread that walks: the host's, or in a graph the stream's.
  Mode mode_ = Mode::kEager;
  std::uint32_t works_ = 0;  // counted
  profile::Ticket ticket_;   // of the graph
  Workers* workers_ = nullptr;
};

// An operator of the host's walk, with the line that calls it; none inside a graph.
class Op {
 public:
  template <class... Tensors>
  Op(const Launcher& launcher, profile::Call call, const Tensors&... inputs) {
    if (launcher.records_ops()) [[unlikely]]
      op_.emplace(call, inputs...);
  }

 private:
  std::optional<profile::Op> op_;
};

}  // namespace culprit::lab
