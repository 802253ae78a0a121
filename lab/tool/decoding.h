// Requests that decode as `lab bench` has them: contexts are drawn, not computed, so every step decodes
// one token of each. With --arrive further requests come in beside them, whose prompts are computed.
// A step's time is that of Engine::step(), on the clock of all.
#pragma once

#include <cstdint>
#include <memory>

#include "lab/engine/engine.h"
#include "lab/tool/options.h"

namespace culprit::lab {

// What of a command line one run takes: the lists of `lab bench` have several.
struct Workload {
  Reading reading = Reading::kFused;
  std::int64_t batch = 1, context = 0;
  std::int64_t steps = 0;  // that it can run at most
};

struct TimedStep {
  Nanos time = 0;
  std::int64_t batch = 0;  // requests in it
  bool prefills = false;   // computes prompt tokens
};

class Decoding {
 public:
  // The weights must outlive it.
  static Result<std::unique_ptr<Decoding>> make(const Options& options, const Weights& weights,
                                                Ranks* ranks, const Workload& workload);
  TimedStep step();
  Engine& engine() { return *engine_; }

 private:
  Decoding(const Arrivals& arrivals, std::uint64_t seed) : arrivals_(arrivals), seed_(seed) {}
  Status submit(std::int64_t prompt, std::int64_t context, std::int64_t answer);

  std::unique_ptr<Engine> engine_;
  Arrivals arrivals_;
  Sampling sampling_;
  std::uint64_t seed_ = 0;
  std::int64_t submitted_ = 0, steps_ = 0;
};

}  // namespace culprit::lab
