// Ranks: the figures of each rank or device of one file, side by side, and which of them an answer
// is about: of those with decode steps, or else with steps at all, the one that works longest in a
// step. Communication does not count as work there: a rank that waits for others spends the time in
// its collectives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"

namespace culprit::evidence {

struct RankFigures {
  std::optional<std::int64_t> rank;  // as the label says: 1 of "TP01"; none without labels
  std::string label;                 // "TP01-DP00"; empty without labels
  std::string process;               // pid of the host where several share a label; else empty
  std::int64_t device = 0;
  std::size_t index = 0;             // into run::Builder::devices()
  std::int64_t kernels = 0;          // in the whole recording
  Nanos kernel_ns = 0, busy_ns = 0;  // sum of them, and union of all activities, likewise
  run::StepKind kind = run::StepKind::kUnknown;
  run::StepsHow how = run::StepsHow::kWholeTrace;
  StepStats steps;  // of the steps used
  Nanos comm_ns_per_step = 0, work_ns_per_step = 0;
  std::vector<BudgetRow> budget;
  std::optional<Error> refused;  // no figures of steps then
};

struct Ranks {
  std::vector<RankFigures> all;  // by label, process and device; empty for a single device
  std::size_t headline = 0;      // which the answer is about
};

Ranks measure_ranks(const store::Trace& trace, const run::Builder& builder, run::Options options,
                    const Knowledge& known);

// "TP01", "device 1", "device 0 of process 4002", "TP01 device 1" where a rank has several.
std::string rank_name(const RankFigures& rank, const Ranks& ranks);

}  // namespace culprit::evidence
