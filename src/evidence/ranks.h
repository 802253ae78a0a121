// Ranks: the figures of each rank or device of the input side by side, who waits for whom, and which
// of them the answer is about: the one that the others wait for; where nobody stands out, of those with
// decode steps, or else with steps at all, the one that works longest in a step. Communication does not
// count as work there: a rank that waits for others spends the time in its collectives.
// Ranks come from one file that holds several, or from files of their own, one of which is in memory
// at a time: what is kept of each is its figures and its RankRecord.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/rank_record.h"
#include "evidence/rank_skew.h"

namespace culprit::evidence {

struct RankFigures {
  std::optional<std::int64_t> rank;  // as header, label or file name say: 1 of "TP01"; else none
  std::string label;                 // "TP01-DP00"; empty without labels
  std::string process;               // pid of the host where several share a label; else empty
  std::int64_t device = 0;
  std::size_t file = 0;              // index of its input
  std::size_t index = 0;             // into run::Builder::devices() of that
  std::int64_t kernels = 0;          // in the whole recording
  Nanos kernel_ns = 0, busy_ns = 0;  // sum of them, and union of all activities, likewise
  run::StepKind kind = run::StepKind::kUnknown;
  run::StepsHow how = run::StepsHow::kWholeTrace;
  StepStats steps;                                                         // of the steps used
  Nanos comm_ns_per_step = 0, wait_ns_per_step = 0, work_ns_per_step = 0;  // of the budget
  std::vector<BudgetRow> budget;
  std::optional<Error> refused;  // no figures of steps then
  RankRecord record;
};

struct Ranks {
  std::vector<RankFigures> all;  // by rank, label, process and device; empty for a single device
  std::size_t headline = 0;      // which the answer is about
  Skew skew;                     // of those ranks, in that order
  std::int64_t absent = 0;       // ranks of the run that are not in the input
};

// The devices of one trace: at most run::kMostCompared. Empty for a single device.
std::vector<RankFigures> measure_devices(const store::Trace& trace, const run::Builder& builder,
                                         const run::Options& options, const Knowledge& known);
// The device of a trace that holds one rank: of several that with most kernel time. `look` sees the
// evidence before it goes; it is not called where the run gives none.
RankFigures measure_rank(const store::Trace& trace, const run::Builder& builder,
                         const run::Options& options, const Knowledge& known,
                         const std::function<void(Evidence&)>& look = {});

// Ranks of one run side by side: sorted, waiting told from communication, the headline chosen.
// `relate`: of the figures in the order that they then have; without it their records are related.
using Relate = std::function<Skew(const std::vector<RankFigures>& figures)>;
Ranks compare_ranks(std::vector<RankFigures> figures, const Relate& relate = {});

// Why these cannot be ranks of one run; Ok if they can. `names`: of their files. Error: kUsage.
Status check_same_run(const std::vector<RankFigures>& figures,
                      const std::vector<std::string>& names);

// "TP01", "rank 3", "device 1", "device 0 of process 4002", "TP01 device 1" where a rank has several.
std::string rank_name(const RankFigures& rank, const Ranks& ranks);

}  // namespace culprit::evidence
