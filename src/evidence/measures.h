// The measures behind Evidence, in the order in which measure() takes them. Each reads the run and
// what earlier ones found; none changes the run. Internal to this layer, and to its tests.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/host.h"
#include "evidence/timeline.h"

namespace culprit::evidence {

// What every measure stands on.
struct Basis {
  const run::Run& run;
  std::vector<Segment> segments;  // the device's time, one owner each
  store::SpanSet used;            // the used steps
  std::int64_t steps = 0;         // how many
  Nanos mean = 0;                 // of their lengths, rounded to nearest
  HostView host;
  explicit Basis(const run::Run& run);
  Nanos per_step(Nanos total) const;  // rounded to nearest; 0 without used steps
};

StepStats measure_steps(const Basis& basis);
// Rows the layers work on: from the steps' marks, else from the grids of the norms.
void find_tokens(const Basis& basis, const std::vector<KernelFigures>& kernels, StepStats& steps);
Peak find_peak(const run::Run& run);

// Idle device time inside the used steps with an owner each, in time order. A gap that the host and
// the device caused in turn is cut in two.
std::vector<Gap> measure_gaps(const Basis& basis);
// Sets kIdleStall on the gaps of `gaps` in which nothing at all happened on the host.
void find_stalls(const Basis& basis, std::vector<Gap>& gaps);

// Outlier steps and what filled their excess.
std::vector<Outlier> find_outliers(const Basis& basis, Nanos median);
// "compile", "gc", "allocator" where a Python frame's name tells; else empty.
std::string_view cause_of_frame(std::string_view frame);

// Rows sum to `mean` exactly: largest remainder, ties to the earlier owner.
std::vector<BudgetRow> measure_budget(const Basis& basis, const std::vector<Gap>& gaps, Nanos mean);

// Time over all used steps in which one kernel group, or one kind, ran and nothing else did.
struct Exposed {
  std::vector<Nanos> by_group;
  std::array<Nanos, known::kOwnerCount> by_kind{};
};
Exposed measure_exposed(const Basis& basis);

// Activities of the used steps by group, in time order: members(group) is a slice.
class Members {
 public:
  explicit Members(const run::Run& run);
  std::span<const run::ActivityId> of(run::GroupId group) const;

 private:
  std::vector<run::ActivityId> ids_;
  std::vector<std::size_t> starts_;
};

std::vector<KernelFigures> measure_kernels(const Basis& basis, const Members& members,
                                           const Exposed& exposed);
// Elements, element types and bytes of one group, from recorded dims where all calls agree, else
// from the grid and the name.
void weigh(const run::Run& run, std::span<const run::ActivityId> members, KernelFigures& figures);
// Bytes, GB/s, share of peak and regime from elements and element types.
void rate(const run::Run& run, const Peak& peak, Nanos fastest, KernelFigures& figures);

// Finds pool reads and fills in what follows for their kernels (source type, exact elements).
std::vector<PoolRead> find_pool_reads(const Basis& basis, const Members& members,
                                      Evidence& evidence);

Attribution measure_attribution(const Basis& basis, const std::vector<KernelFigures>& kernels);
// Facts of the figures above: step, budget, and every kernel group with 1 % of the step or more.
void state_facts(Evidence& evidence);

}  // namespace culprit::evidence
