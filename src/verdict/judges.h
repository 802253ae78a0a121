// The judges: one per suspect, each in a file of its own. A judge reads evidence, states the facts it
// cites, and adds suspects and hypotheses that are ruled out. Internal to this layer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/verdict.h"

namespace culprit::verdict {

struct Judge {
  Rule rule;
  void (*examine)(evidence::Evidence& evidence, Verdict& verdict);
};

extern const Judge kWholePoolCast;    // whole_pool_cast.cc
extern const Judge kWholePoolCopy;    // whole_pool_copy.cc
extern const Judge kBatchCast;        // batch_cast.cc
extern const Judge kGraphMissing;     // graphs.cc
extern const Judge kGraphLaunch;      // graphs.cc
extern const Judge kHostLaunch;       // host_launch.cc
extern const Judge kHostWork;         // host_work.cc
extern const Judge kBlockingCopy;     // blocking_copy.cc
extern const Judge kHostSync;         // host_sync.cc
extern const Judge kExposedComm;      // comm.cc
extern const Judge kCommLatency;      // comm.cc
extern const Judge kLowOccupancy;     // occupancy.cc
extern const Judge kSingleBlock;      // occupancy.cc
extern const Judge kSmallKernels;     // small_kernels.cc
extern const Judge kRepeatedRead;     // gemm.cc
extern const Judge kGemmInefficient;  // gemm.cc
extern const Judge kLayoutCopy;       // layout_copy.cc
extern const Judge kWeightDequant;    // weight_dequant.cc
extern const Judge kOversizedGrid;    // oversized_grid.cc
extern const Judge kOutsideProcess;   // outside_process.cc
extern const Judge kPrefill;          // prefill_interference.cc
extern const Judge kStepStall;        // step_stall.cc
extern const Judge kStraggler;        // straggler.cc

// What a late rank explains is not every rank's: suspects of the same cause keep what is left.
void yield_to_straggler(const evidence::Evidence& evidence, Verdict& verdict);
// A change of this rank's time, carried through the meetings of all ranks: the others have the same
// kernels, or not, and what only turns into waiting saves nothing.
void bound_by_ranks(const evidence::Evidence& evidence, const evidence::Change& change, Gain& gain);

// What a fix changes: in the graph of the step; and, for the bound where that cannot be retimed, the
// owners whose time is gone and cannot bound the step any more.
struct Cure {
  evidence::Change change;
  std::vector<known::Owner> owners;
};
// The kernels of these groups take `scale` of their time; at 0 they and their launches are gone.
evidence::Change scaled(const evidence::Evidence& evidence, std::span<const run::GroupId> groups,
                        double scale);
// The step after the cure: retimed, or else the step without `exposed` as a bound.
Gain gain_of(const evidence::Evidence& evidence, Nanos exposed, const Cure& cure);
Gain bound_gain(const evidence::Evidence& evidence, Nanos exposed,
                std::span<const known::Owner> cured);
// Time beside the steps that count, per step: without it the mean step is what is left.
Gain interruption_gain(const evidence::Evidence& evidence, Nanos per_step);
// Fills share and gain from exposed_ns_per_step.
void set_cost(const evidence::Evidence& evidence, const Cure& cure, Suspect& suspect);

// A suspect that is these kernels (indices into Evidence::kernels): their time, what of it is exposed,
// the lines they come from, the facts about each.
Suspect accuse_kernels(evidence::Evidence& evidence, std::string_view id,
                       std::span<const std::size_t> kernels);
std::vector<run::GroupId> groups_of(const evidence::Evidence& evidence,
                                    std::span<const std::size_t> kernels);
// How often per layer that many calls a step are; 0 where it is no whole number or layers are unknown.
std::int64_t times_per_layer(const evidence::Evidence& evidence, double calls_per_step);

// Whether a suspect found before already holds this kernel (an index into Evidence::kernels).
bool accused(const Verdict& verdict, std::size_t kernel);
// Idle device time that a large copy of pageable memory, and no other wait, left behind itself.
bool is_behind_blocking_copy(const evidence::Evidence& evidence, const evidence::Gap& gap);
// Exposed time per step of the suspects with this id.
Nanos exposed_by(const Verdict& verdict, std::string_view id);

const evidence::BudgetRow* row_of(const evidence::Evidence& evidence, known::Owner owner);
Nanos time_of(const evidence::Evidence& evidence, known::Owner owner);  // 0 without a row
// Id of the fact with this name; empty if it was not stated.
std::string fact_named(const evidence::Evidence& evidence, std::string_view name);
// The query of a fact that no other field of the answer repeats.
std::string own_query(std::string_view fact);
// "64.6 ms of the 93.2 ms step (69.3 %)"
std::string cost_text(const evidence::Evidence& evidence, Nanos ns);

}  // namespace culprit::verdict
