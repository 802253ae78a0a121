// The judges: one per suspect, each in a file of its own. A judge reads evidence, states the facts it
// cites, and adds suspects and hypotheses that are ruled out. Internal to this layer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verdict/verdict.h"

namespace culprit::verdict {

struct Judge {
  Rule rule;
  void (*examine)(evidence::Evidence& evidence, Verdict& verdict);
};

extern const Judge kWholePoolCast;  // whole_pool_cast.cc
extern const Judge kHostLaunch;     // host_launch.cc
extern const Judge kHostSync;       // host_sync.cc

// The step without `exposed`: a bound, and what bounds the step then. `cured`: owners whose time is
// gone after the fix and cannot bound it any more.
Gain bound_gain(const evidence::Evidence& evidence, Nanos exposed,
                std::span<const known::Owner> cured);
// Fills share and gain from exposed_ns_per_step.
void set_cost(const evidence::Evidence& evidence, std::span<const known::Owner> cured,
              Suspect& suspect);

const evidence::BudgetRow* row_of(const evidence::Evidence& evidence, known::Owner owner);
Nanos time_of(const evidence::Evidence& evidence, known::Owner owner);  // 0 without a row
// Id of the fact with this name; empty if it was not stated.
std::string fact_named(const evidence::Evidence& evidence, std::string_view name);
// The query of a fact that no other field of the answer repeats.
std::string own_query(std::string_view fact);
// "64.6 ms of the 93.2 ms step (69.3 %)"
std::string cost_text(const evidence::Evidence& evidence, Nanos ns);

}  // namespace culprit::verdict
