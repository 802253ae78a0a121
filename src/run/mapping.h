// Mapping: the kernels of graph replays are held against scripts (script.h) of other traces, or of
// the run's own, and the origin of each launch is lent to the kernel that stands at its place. Never
// by hope: a place counts if kernel names agree in order; where the script tells no names (CUDA), if
// the counts agree and every call site launches the same kernel each time. What is not verified is
// not lent, and a note says how many and why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/run.h"

namespace culprit::run {

struct Lender {
  std::shared_ptr<const Run> run;  // null: the run's own captures
  std::string path, found;         // found: "flag", "argument", "beside", "same trace"
};

// A trace as a lender: links, nesting and scripts; no completeness is asked of it. The trace must
// outlive it. Errors: ranks-inseparable.
Result<std::shared_ptr<const Run>> build_lender(const store::Trace& trace, int threads);

// Does the trace record the capture of graphs rather than a run?
bool is_capture_trace(const store::Trace& trace);

// Kernels of graph replays in the run, all without an origin until something is lent to them.
std::int64_t graph_kernels(const Run& run);

// Lends what can be verified; fills loans, lenders, lendings and notes. The run's own captures come
// first, then `lenders` in order; of several that fit equally the earlier lends.
void lend(std::vector<Lender> lenders, Run& run);

}  // namespace culprit::run
