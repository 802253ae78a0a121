// Engine: requests in, tokens out. Each step serves all running requests at once (continuous batching):
// one token of each that decodes, and prompts in chunks beside them. A request that finds the pool
// full has the youngest one evicted, which later computes its rows again and goes on as if nothing had
// been. Neither batch nor chunks nor evictions change a request's tokens.
// After construction and submission a step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/engine/forward.h"
#include "lab/engine/sampling.h"

namespace culprit::lab {

// Who launches kernels: the host one by one, or the stream itself, a step at once.
enum class LaunchMode : std::uint8_t { kEager, kGraph };

struct EngineOptions {
  int threads = 0;  // 0: one per core
  Isa isa = Isa::kReference;
  Reading reading = Reading::kFused;
  KvFormat pool_format = KvFormat::kBf16;
  std::int64_t pool_tokens = 4096, page = 1;
  std::int64_t batch = 1;       // requests that run at once
  std::int64_t longest = 4096;  // tokens of a request, prompt and answer
  std::int64_t chunk = 64;      // prompt tokens in a step, beside those that decode
  LaunchMode launch = LaunchMode::kGraph;
  Faults faults = {};
  Ranks* ranks = nullptr;  // with the other shares of the model; they make the same calls
};

struct Request {
  std::vector<std::int32_t> prompt = {};
  std::int64_t new_tokens = 16;
  Sampling sampling = {};
  bool stops_at_eos = false;
  std::int64_t context =
      0;  // rows of a made-up context in front of the prompt: drawn, not computed
};

struct StepReport {
  std::int64_t prefilled = 0, decoded = 0, evicted = 0;  // tokens, tokens, requests
  std::int64_t requests = 0;                             // in the step
};

class Engine {
 public:
  // The weights must outlive it.
  static Result<std::unique_ptr<Engine>> make(const Weights& weights, const EngineOptions& options);

  // Queues it; its number. Errors: an empty prompt, a token that is none, more tokens than the pool
  // or a page table holds.
  Result<std::size_t> submit(Request request);
  // Runs one step; at its end every request that has all its rows has one token more.
  StepReport step();
  bool idle() const { return waiting_.empty() && running_.empty(); }

  std::span<const std::int32_t> generated(std::size_t request) const;
  bool finished(std::size_t request) const { return states_[request].finished; }
  // The scores from which a step drew a request's last token; until the next step. Empty: it drew none.
  std::span<const float> last_logits(std::size_t request) const;

  // Between steps.
  void set_recorder(Recorder* recorder) {
    launch_.set_recorder(recorder);
    forward_launch_.set_recorder(recorder);
  }
  const Pool& pool() const { return pool_; }
  std::int64_t vocab() const { return vocab_; }  // tokens that a prompt may hold
  std::int64_t buffer_bytes() const { return forward_->bytes(); }
  int threads() const { return stream_.threads(); }

 private:
  struct State {
    std::vector<std::int32_t> tokens;  // context (as zeros), prompt, then what was generated
    std::int64_t prompt = 0, wanted = 0;
    std::int64_t context = 0;
    std::int64_t cached = 0;  // tokens whose rows are in the pool
    Sampling sampling;
    bool stops_at_eos = false, finished = false;
    Lease lease;
    std::int64_t logits = -1;  // which row of the last step's logits is its own

    std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
  };

  struct Planned {
    std::size_t request = 0;
    std::int64_t rows = 0;
  };

  Engine(const Weights& weights, const EngineOptions& options, Pool pool);
  void admit();
  void make_up_context(State& state);
  void plan(StepReport& report);
  bool make_room(std::size_t place, std::int64_t tokens, StepReport& report);
  void waste_time();
  void launch_forward();
  void launch_draws();
  void draw(std::int64_t place, int thread);
  void copy_logits();
  void take_draws();

  const Weights& weights_;
  EngineOptions options_;
  std::int64_t vocab_;
  Stream stream_;
  Launcher launch_;          // of the host's thread
  Launcher forward_launch_;  // of whoever walks through the forward pass: in a graph the stream
  Pool pool_;
  std::unique_ptr<Forward> forward_;
  std::vector<Sampler> samplers_;     // one per thread
  std::vector<State> states_;         // by number
  std::vector<std::size_t> waiting_;  // the next one last
  std::vector<std::size_t> running_;  // the oldest first
  std::vector<StepRow> rows_;
  std::vector<Planned> planned_;
  // [batch] the token after each of `planned_`: where the stream writes it, and the host's copy.
  std::vector<std::int32_t> drawn_, next_;
  std::vector<float> logits_copy_;  // the host's, where it takes one
  std::int64_t steps_ = 0;
};

}  // namespace culprit::lab
