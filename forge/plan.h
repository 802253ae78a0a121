// A step laid out once: what opens and closes at which call, and the launches in order.
// Invariant: all that does not depend on the clock is decided here; steps of a kind share a plan.
// A Moment is a place in a call: in the lead before its first API call or the tail after its last,
// both cut into equal parts.
// Cost: built once per kind; memory grows with the frames of one step, not with the steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "forge/run.h"

namespace culprit::forge {

struct Moment {
  std::uint32_t call = 0;
  std::uint32_t slot = 0;  // 1-based part of the lead or tail
  bool tail = false;
};

// A frame, operator or annotation from its opening to its closing.
struct Span {
  std::uint32_t text = 0;    // index into Plan::frames, ops or annotations
  std::int32_t parent = -1;  // frames only: index of the enclosing span, -1: outside the step
  std::int32_t layer = 0;
  bool annotation = false;
  Moment open;
  Moment close;
};

struct PlannedCall {
  const Call* call = nullptr;
  std::uint32_t first_launch = 0;
  std::uint32_t launches = 0;
  std::int32_t op = -1;  // the operator that launches, index into StepPlan::ops
  std::uint32_t lead_slots = 1;
  std::uint32_t tail_slots = 1;
  bool graph = false;  // all launches under one graph launch
};

struct StepPlan {
  std::vector<PlannedCall> calls;
  std::vector<const Launch*> launches;
  std::vector<Span> ops;     // operators and annotations, by opening
  std::vector<Span> frames;  // by opening
};

enum class Marks { kNone, kProfiler, kSglang, kVllm };

struct PlanOptions {
  Marks marks = Marks::kSglang;
  bool graph = false;
  bool stacks = true;
  std::uint64_t filler = 0;  // extra frames (with stacks) or operators (without) per step
};

// Annotation texts are indices into `annotations`; '@' in them stands for the step's number.
struct Plan {
  std::vector<Frame> frames;
  std::vector<Op> ops;
  std::vector<const Collective*>
      collectives;  // by op: what a record_param_comms reports, else null
  std::vector<std::string> annotations;
  std::vector<StepPlan> steps;  // by kind
  std::vector<StepPlan> first;  // by kind, the later half only: the recording began inside it
  std::vector<StepPlan> last;   // by kind, the earlier half only
};

// `run` must outlive the plan.
Plan make_plan(const Run& run, const PlanOptions& options);

}  // namespace culprit::forge
