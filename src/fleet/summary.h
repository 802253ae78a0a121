// Summary: what is kept on disk of one trace of a fleet: its rank's figures, steps, kernels, suspects and
// notes, and its collectives with what the rank did between them (evidence/rank_record.h). Everything that
// a fleet's answer says follows from these, so that a trace is read once, by one process, and goes.
// Bounded: at most kMostCalls collectives, the first ones of the recording, cut between two steps, and
// kMostSteps, kMostKernels and kMostSuspects beside them: some 9 MB, whatever the trace. Collectives lie in
// blocks, so that those of some steps can be had without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/ranks.h"
#include "store/notes.h"
#include "store/trace.h"

namespace culprit::fleet {

inline constexpr std::size_t kMostCalls = 262'144, kMostSteps = 65'536, kMostKernels = 1'024,
                             kMostSuspects = 64, kLongestText = 4'096;

enum class Kind : std::uint8_t {
  kRank,     // a rank of the run
  kCapture,  // a recording of a graph capture: no rank, no figures
  kBad       // it could not be read; `fault` says why
};

struct StepRow {
  Nanos begin = 0, length = 0;  // device time, on the trace's own clock
  run::StepKind kind = run::StepKind::kUnknown;
  std::optional<std::int64_t> batch;
  bool used = false;  // counts in the means
};

// A suspect of this trace alone: what waits for other ranks is not known here.
struct Accusation {
  std::string id, standing, confidence, claim;
  Nanos ns_per_step = 0, exposed_ns_per_step = 0;
};

struct Summary {
  Kind kind = Kind::kBad;
  std::string path;    // as the answer shows it
  std::string format;  // "kineto-json"
  std::int64_t bytes = 0, events = 0;
  std::optional<Error> fault;     // of kBad
  store::Notes notes, run_notes;  // of reading; of building the run
  evidence::RankFigures figures;  // of kRank
  std::int64_t calls_in_all = 0;  // collectives of the trace
  std::int64_t calls_kept = 0;    // ... of which figures.record holds the first
  std::int64_t steps_in_all = 0;
  std::vector<StepRow> steps;  // the first of them, in time order
  std::vector<Accusation> suspects;
};

// A trace as its summary. `path`: as the answer shows it; `named`: the rank that the file's name tells.
Summary summarize(const store::Trace& trace, const std::string& path,
                  std::optional<std::int64_t> named, const run::Options& options,
                  const evidence::Knowledge& known);
Summary summarize_fault(const std::string& path, std::int64_t bytes, const Error& fault);

// The collectives of the first `most` at most, cut between two steps where one that counts fits, and what
// counts them with them. Nothing is changed where there are no more.
void cut(Summary& summary, std::size_t most);

// Steps [first, end) of a rank. A collective outside every step belongs to the one before it.
inline constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();
struct StepRange {
  std::int64_t first = 0, end = kAllSteps;
};
std::int64_t used_steps(const std::vector<StepRow>& steps, StepRange range);  // that count

// The bytes of a summary in parts: the head is enough for all but ranks side by side.
struct Encoded {
  std::string head, tail;  // tail: steps, kinds of collectives, which steps are in which block
  std::vector<std::string> blocks;  // collectives in time order
};
Encoded encode(Summary summary);
// False: these are no such bytes; the summary is then in an undefined state.
bool decode_head(std::string_view head, Summary& summary);
// Behind the head. `blocks`: the steps that each block holds collectives of.
bool decode_tail(std::string_view tail, Summary& summary, std::vector<StepRange>& blocks);
// Behind the tail: adds the collectives of a block that are of these steps.
bool decode_block(std::string_view block, StepRange steps, Summary& summary);

}  // namespace culprit::fleet
