// The one door through which every kernel of a step goes: what it is called, what it works on, the
// bytes it must move, when it ran. A Recorder sees them all (the bench's table, a profiler's trace);
// without one a launch costs what Workers::run costs, with one two readings of the clock more.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/id.h"
#include "lab/engine/workers.h"

namespace culprit::lab {

struct Launch {
  std::string_view kernel;  // its role: "q_b", "pool-cast", "expert gate_up"; outlives the engine
  std::string_view format;  // of what it mainly reads: "nvfp4", "e4m3"; empty: plain floats
  int layer = -1;           // -1: of no layer
  std::int64_t read = 0, written = 0;           // bytes, each counted once
  std::int64_t tokens = 0, rows = 0, cols = 0;  // its shape: [tokens, cols] in, [tokens, rows] out
};

// Work on `tokens` rows of `width` floats that are read and written once.
inline Launch row_launch(std::string_view kernel, int layer, std::int64_t tokens,
                         std::int64_t width) {
  const std::int64_t bytes = tokens * width * 4;
  return {kernel, {}, layer, bytes, bytes, tokens, width, width};
}

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Called by the thread that launches, between launches; must not allocate.
  virtual void launched(const Launch& launch, Nanos start, Nanos end) = 0;
};

class Launcher {
 public:
  explicit Launcher(Workers& workers) : workers_(workers) {}
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }  // null: nobody looks
  int threads() const { return workers_.threads(); }

  // body(piece, thread) for each piece of [0, pieces).
  template <class Body>
  void operator()(const Launch& launch, std::int64_t pieces, const Body& body) {
    if (recorder_ == nullptr) return workers_.run(pieces, body);
    const Nanos start = now();
    workers_.run(pieces, body);
    recorder_->launched(launch, start, now());
  }

  static Nanos now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  Workers& workers_;
  Recorder* recorder_ = nullptr;
};

}  // namespace culprit::lab
