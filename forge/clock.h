// When everything happens: one host thread and two streams per rank, stepped through a plan.
// Invariant: a kernel starts when it was launched, its stream is free and, for a collective, every
// rank has come; gaps are a result of that, never added.
// Jitter is a hash of (seed, step, launch, rank): the same whoever asks, in whatever pass.
// Cost: about 20 ns per launch and rank; memory of one step.
#pragma once

#include <cstdint>
#include <vector>

#include "forge/plan.h"
#include "forge/run.h"

namespace culprit::forge {

struct CallTimes {
  Nanos begin = 0;
  Nanos first_api = 0;  // begin of the first API call; the lead ends here
  Nanos last_api = 0;   // end of the last API call; the tail begins here
  Nanos end = 0;
};

struct LaunchTimes {
  Nanos api_begin = 0;
  Nanos api_end = 0;
  Nanos device_begin = 0;  // both 0: nothing ran
  Nanos device_end = 0;
};

struct StepTimes {
  std::vector<CallTimes> calls;
  std::vector<LaunchTimes> launches;
  Nanos at(const StepPlan& plan, Moment moment) const;
};

class Clock {
 public:
  // `world` ranks run the same plan; times are those of `rank`.
  Clock(const Run& run, int world, int rank, std::uint64_t seed);

  // Times of the next step; valid until the next call.
  const StepTimes& step(const StepPlan& plan);

  // The end of everything so far, on host and device.
  Nanos now() const;

  // When the other process has the device, in its turn of this number; empty: never.
  struct Turn {
    Nanos begin = 0;
    Nanos end = 0;
  };
  Turn away(std::int64_t turn) const;

 private:
  static constexpr std::size_t kQueueDepth =
      1024;  // launches the driver holds before a call must wait

  struct Rank {
    Nanos host = 0;
    Nanos device = 0;           // the stream is free from here on
    Nanos aside = 0;            // the same of the second stream
    Nanos aside_before = 0;     // and before its latest launch
    Nanos event = 0;            // end of the launch that marked the latest event
    Nanos event_before = 0;     // and of the one before
    std::vector<Nanos> recent;  // starts of the last kQueueDepth launches, a ring
    std::size_t launched = 0;
  };

  void run_call(const StepPlan& plan, std::uint32_t index);
  Nanos host_of(const PlannedCall& planned, std::uint32_t index, std::size_t rank) const;
  Nanos pause_of(const PlannedCall& planned, std::size_t rank) const;
  bool is_late(std::size_t rank) const;
  Nanos device_of(const Launch& launch, std::size_t rank) const;
  struct Graph {
    Nanos call = 0;  // 0: no graph
    bool first = false;
  };
  void run_launch(const Launch& launch, std::uint32_t index, Graph graph);
  void wait(const Launch& launch, Rank& rank, LaunchTimes& times) const;
  Nanos start(const Launch& launch, Rank& rank, Graph graph, Nanos reachable) const;
  Nanos when_here(Nanos time) const;
  Nanos jittered(Nanos time, int per_mille, std::uint64_t what, std::size_t rank) const;

  const Run& run_;
  std::size_t rank_;
  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  std::vector<Rank> ranks_;
  std::vector<LaunchTimes> pending_;  // of the launch in hand, by rank
  StepTimes times_;
};

}  // namespace culprit::forge
