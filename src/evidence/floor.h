// How far a step is from what the hardware allows: the floor of known/floor.h beside the budget's
// owners. Components whose kernels a trace does not tell apart share a row; what the floor does not
// count (casts, norms, idle time) has rows with a floor of zero. Nothing here guesses a batch or a
// number of GPUs: what is not known is an error that names the flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"
#include "known/floor.h"

namespace culprit::evidence {

struct Distance {
  std::string name;  // "matrix products"
  std::vector<known::Component> components;
  std::vector<known::Owner> owners;  // with time, largest first
  Nanos floor = 0, measured = 0;     // per step
  std::string together;              // why its components cannot be told apart; empty: there is one
};

struct StepFloor {
  known::FloorCase given;
  known::Floor floor;
  std::vector<Distance> distance;  // empty without a trace; its measured times add up to the step
  Nanos measured = 0;              // mean step; 0 without a trace
  // The run is faster than its floor somewhere, or has kernels that the model cannot have: model,
  // batch, context or number of GPUs are not the run's. A note says where.
  bool contradicted = false;
};

// What flags say beyond a Knowledge; empty: the trace's own.
struct FloorWishes {
  std::optional<std::int64_t> batch, context;
  bool tp_given = false;  // by flag or server info
};

// Each floor beside the owners that hold its kernels. Floors and owners are covered once each.
std::vector<Distance> distances(const known::Floor& floor, const std::vector<BudgetRow>& budget);
// The floor of a measured run. Errors: kUsage where the model, GPU, batch or number of GPUs is not
// known, or the step is no decode step.
Result<StepFloor> floor_of_run(const Evidence& evidence, const FloorWishes& wishes);

}  // namespace culprit::evidence
