// Comparison: two recordings of the same work side by side: how much longer a step takes, whether the
// steps' own noise explains that, which owners and kernels the time moved between, and why. Holds no
// reference to what it was made from. Invariants: budget deltas add up to the step's delta, in whole
// ns; the sides swapped, every difference changes its sign and nothing else. Differences are after
// minus before. Cost: O(kernels of a step) and a table of at most kMostSlots squared bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verdict/verdict.h"

namespace culprit::compare {

enum class Outcome : std::uint8_t { kSlower, kFaster, kNoDifference, kNotComparable };
std::string_view outcome_name(Outcome);  // "no-significant-difference"

enum class Change : std::uint8_t {
  kSame,
  kSlower,  // per call
  kFaster,
  kMoreCalls,
  kFewerCalls,
  kLargerGrid,
  kSmallerGrid,
  kReplaced,  // another kernel of the same role at the same place
  kNew,
  kGone
};
std::string_view change_name(Change);  // "more-calls"

// A step far longer than its like; it does not count in the means.
struct Stall {
  std::int64_t index = 0;  // as --steps counts
  Nanos length = 0, excess = 0;
  std::string cause;    // "gc", "compile", "allocator", "unknown"
  bool waited = false;  // most of the excess lies in communication: it waits for another rank
};

// What is said about one recording.
struct Side {
  std::string path, format;
  std::int64_t file_bytes = 0, events = 0;
  std::optional<std::int64_t> rank;
  std::string device;  // empty: unknown
  std::optional<std::int64_t> layers;
  run::StepKind kind = run::StepKind::kUnknown;
  run::StepsHow how = run::StepsHow::kWholeTrace;
  std::optional<std::int64_t> batch;  // of all steps that count
  evidence::StepStats steps;
  std::vector<std::pair<std::int64_t, std::string>> excluded;  // step, why
  std::vector<Stall> stalls;
  Nanos stalled_per_step = 0;  // excess of the stalls over all complete steps, per step
  double kernels_per_step = 0;
  std::optional<double> launches_per_step;  // calls that launched them; none recorded: unknown
  double replayed = 0;                      // share of the kernels that graph replays launched
  store::Notes notes;
};

struct BudgetDelta {
  known::Owner owner = known::Owner::kUnexplained;
  Nanos before = 0, after = 0;
  double calls_before = 0, calls_after = 0;
  Nanos delta() const { return after - before; }
};

// One side of a kernel's row.
struct KernelSide {
  std::string name, short_name;
  double calls_per_step = 0;
  Nanos ns_per_step = 0, avg_ns = 0;
  store::Dim3 grid{}, block{};                  // {0,0,0}: not recorded
  std::optional<std::int64_t> bytes, elements;  // per call
  std::vector<std::int64_t> dims;               // of the tensor written
  std::string op;                               // empty: not recorded
  std::optional<run::Source> source;
};

struct KernelChange {
  known::Owner role = known::Owner::kOtherKernel;
  std::string place;  // "every layer", "outside the layers"; empty: unknown
  Change change = Change::kSame;
  std::optional<KernelSide> before, after;  // at least one
  Nanos delta() const {
    return (after ? after->ns_per_step : 0) - (before ? before->ns_per_step : 0);
  }
};

// Why the time moved. Figures are its part of the difference: below zero it made the step faster.
struct Cause {
  std::string id;  // of a suspect, or a name of its own: "fusion-lost"
  verdict::Standing standing = verdict::Standing::kMinor;
  verdict::Confidence confidence = verdict::Confidence::kPossible;
  std::string claim;
  Nanos ns = 0, exposed = 0;         // per step
  bool beside_steps = false;         // time beside the steps that count (stalls, prefills)
  std::vector<std::size_t> kernels;  // indices into Comparison::kernels
  std::vector<run::Source> where;
  std::optional<verdict::TensorMatch> tensor;
  std::vector<std::string> facts;
  std::string disproved_if, fix;
  std::vector<std::string> alternatives;
};

struct Comparison {
  Side before, after;
  Outcome outcome = Outcome::kNotComparable;
  std::string why_not;              // of kNotComparable
  Nanos delta = 0;                  // of the mean step
  double share = 0;                 // of the mean step before
  std::optional<bool> significant;  // none: too few steps to judge noise
  std::optional<Nanos> noise;     // half of the 95 % interval of the delta, from the steps' spread
  std::optional<double> p_value;  // Mann-Whitney, two-sided
  std::vector<BudgetDelta> budget;    // largest difference first; sums to `delta`
  std::vector<KernelChange> kernels;  // largest difference first
  std::vector<Cause> causes;          // largest first; faster and slower ones alike
  std::vector<verdict::RuledOut> ruled_out;
  std::vector<evidence::Fact> facts;
  store::Notes notes;  // about the pair; those of each recording are in its side
};

// One recording, as far as diagnose takes it. `path` is as the user gave it.
struct Input {
  const run::Run& run;
  const evidence::Evidence& evidence;
  const verdict::Verdict& verdict;
  std::string path;
};

// Which steps of two runs are alike: of one kind, and of one batch where both have enough of it.
struct Matching {
  std::optional<run::StepKind> kind;  // what run::Options should ask for; none: as it is
  std::optional<std::int64_t> batch;
  std::string why_not;  // they have no kind in common; empty: they do
};
Matching match_steps(const run::Run& before, const run::Run& after);

struct Options {
  double least_share = 0.005;  // of the shorter step: a smaller difference is called none
};
Comparison compare(const Input& before, const Input& after, const Options& options);

// Causes that only two recordings can show, as `culprit list suspects` prints them; the suspects of one
// recording (verdict::rules) can be causes as well.
std::vector<verdict::Rule> rules();

// Pairs of one run's ranks, and the one that an answer is about: the one whose own work and idle time,
// communication not counted, moved most; the others may only have waited for it.
struct Ranked {
  std::string name;  // "rank 3", or the file's; empty for a single pair
  Comparison comparison;
};
struct Comparisons {
  std::vector<Ranked> all;  // at least one
  std::size_t headline = 0;
  const Comparison& main() const { return all[headline].comparison; }
};
std::size_t find_headline(const std::vector<Ranked>& all);
Nanos communication_delta(const Comparison& comparison);  // exposed, per step

// Where there is nothing to compare.
Comparison refuse(std::string before, std::string after, std::string why);

}  // namespace culprit::compare
