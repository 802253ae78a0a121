// Merge: summaries to ranks side by side, as `culprit DIR` has them from the traces (evidence/ranks.h).
// Summaries are read one after another, first without their collectives. What is held at once does not
// grow with the number of traces but for each rank's own figures: ranks are related over a stretch of
// steps after the other, each with most_held() collectives of all ranks together, or one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/ranks.h"
#include "fleet/shelf.h"

namespace culprit::fleet {

inline constexpr std::size_t kMostHeldKernels =
    50'000;  // of all ranks together, the largest of each

struct Skipped {
  std::size_t file = 0;  // index of the trace
  std::string code;      // of the notes
  std::string why;
};

struct Used {
  std::size_t file = 0;
  std::optional<std::int64_t> rank;
  store::TraceInfo info;  // format, bytes and events only
  store::Notes notes;     // of reading
};

struct Merged {
  evidence::Ranks ranks;   // RankFigures::file is an index into `used`; empty for a single rank
  std::vector<Used> used;  // ranks of the run, in order of the traces
  std::vector<Skipped> skipped;
  std::vector<std::size_t> captures;  // traces that are no runs
  std::int64_t calls = 0;             // collectives of all ranks
  std::int64_t related = 0;           // ... that their summaries hold
  std::int64_t stretches = 0;         // in which these were related
};

// How many collectives of all ranks are held at once: 50,000 to 400,000, some 10 to 80 MB, so that merging
// takes no more memory than reading the largest trace did.
std::size_t most_held(const std::vector<TraceFile>& traces);

// Errors: a summary that is not there.
Result<Merged> merge(const Shelf& shelf, const std::vector<TraceFile>& traces, std::size_t held,
                     const Progress& progress = {});
// What to say where `used` is empty; kUnusable.
Error no_rank(const std::vector<TraceFile>& traces, const Merged& merged);

}  // namespace culprit::fleet
