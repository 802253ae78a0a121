// The step of a drawn deployment before it is a Run: its calls by the role they play, so that a fault
// is a small function that adds, changes or replaces some.
// Healthy as drawn: SGLang with FlashInfer and overlapped scheduling (the host waits for the step
// before), bf16 weights; GEMMs and attention reach the drawn share of the memory's rate.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "forge/geometry.h"
#include "forge/run.h"

namespace culprit::forge {

enum class Role {
  kInput,  // the new tokens go to the device
  kEmbed,
  kNorm,  // before attention
  kQkv,
  kRope,
  kStore,  // the new keys and values go to the pool
  kAttention,
  kOut,
  kReduce,  // over the ranks
  kNormMlp,
  kGateUp,
  kActivation,
  kDown,
  kHead,
  kGather,  // of the ranks' logits
  kLogits,
  kSample,
  kResult,  // the tokens go to the host
  kWait,    // for the tokens of the step before
  kAdded,   // by a fault
};

struct Part {
  Role role;
  Call call;
};
using Parts = std::vector<Part>;

struct Draft {
  Geometry geometry;
  Parts prepare, embed, layer, head, sample, results;
  bool pieces = false;          // each layer is a graph of its own
  Nanos piece_launch = 46'000;  // API time and the engine's work for each
  Nanos piece_host = 120'000;
  Run run;

  // Frames of the place where the part runs.
  std::vector<Frame> frames_of(Role role) const;
};

// `prefill`: the same layers over that many new tokens of one request; 0: decode.
Draft make_draft(const Geometry& geometry, std::int64_t prefill);

Nanos device_time(const Draft& draft);  // of a step, on its first stream
Nanos host_time(const Draft& draft);    // of a step without graphs, API calls included
// Host work takes what makes an eager step's host time this share of its device time.
void balance(Draft& draft, double share);
// The draft as one kind of step of its run. `graphs`: false leaves it eager where others replay.
Step step_of(const Draft& draft, bool graphs);

// Tools of the faults.
void before(Parts& parts, Role role, const std::vector<Call>& calls);
void after(Parts& parts, Role role, const std::vector<Call>& calls);
void replace(Parts& parts, Role role, const std::vector<Call>& calls);
void change(Parts& parts, Role role, const std::function<void(Call&)>& how);

// Calls of this deployment that faults use too.
Nanos small_time(const Geometry& geometry, std::int64_t bytes);  // elementwise: latency or bytes
std::int64_t weight_rows(const Geometry& geometry, Role role);   // n of the GEMM's [n, k] weight
std::int64_t weight_columns(const Geometry& geometry, Role role);
Call gemm(const Draft& draft, Role role, std::int64_t rows);

}  // namespace culprit::forge
