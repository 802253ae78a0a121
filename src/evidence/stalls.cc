// Stalls: rare holes in which not one call, operator or Python function began on the host thread for
// nearly all of the time (a garbage collection, the operating system), or in which it compiled or
// collected. An operator that fills the hole is work.
#include <algorithm>
#include <string_view>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using known::Owner;

// Half a usual step is what users feel as a stutter; shorter holes are host work.
constexpr Nanos kShortestStall = 1'000'000;
constexpr double kNearlyAll = 0.8;

bool stalls_by_name(std::string_view frame) {
  for (std::string_view part : {"gc.collect", "gc_collect", "/_dynamo/", "/_inductor/",
                                "triton/compiler", "triton/runtime/build"}) {
    if (frame.find(part) != std::string_view::npos) return true;
  }
  return false;
}

struct Hole {
  std::size_t gap = 0;  // index
  Nanos begin = 0, end = 0;
  store::ThreadId thread;
  std::vector<Nanos> begins;  // of what began inside
  bool stalls = false;        // something inside is a stall by its name
  bool filled = false;        // by one operator
  Nanos most() const { return static_cast<Nanos>(kNearlyAll * static_cast<double>(end - begin)); }
};

// Longest stretch of the hole in which nothing began.
Nanos longest_void(Hole& hole) {
  std::sort(hole.begins.begin(), hole.begins.end());
  Nanos longest = 0, last = hole.begin;
  for (const Nanos begin : hole.begins) {
    longest = std::max(longest, begin - last);
    last = begin;
  }
  return std::max(longest, hole.end - last);
}

// `holes` in time order, disjoint. `fills`: one row of this table may account for a whole hole.
template <class Table>
void look(const store::Trace& trace, const Table& table, bool fills, std::vector<Hole>& holes) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    const Nanos begin = table.begin[row], end = begin + table.dur[row];
    const auto hole = std::upper_bound(holes.begin(), holes.end(), begin,
                                       [](Nanos t, const Hole& each) { return t < each.end; });
    if (hole == holes.end() || end <= hole->begin || table.thread[row] != hole->thread) continue;
    const Nanos inside = std::min(end, hole->end) - std::max(begin, hole->begin);
    if (fills && inside >= hole->most()) hole->filled = true;
    if (begin < hole->begin) continue;
    hole->begins.push_back(begin);
    hole->stalls = hole->stalls || stalls_by_name(trace.strings.or_empty(table.name[row]));
  }
}

Nanos median_length(const run::Run& run, std::size_t& used) {
  std::vector<Nanos> lengths;
  for (const run::Step& step : run.steps) {
    if (step.used) lengths.push_back(step.length());
  }
  used = lengths.size();
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

}  // namespace

void find_stalls(const Basis& basis, std::vector<Gap>& gaps) {
  const store::Trace& trace = *basis.run.trace;
  // Without operators and frames an empty hole proves nothing: nothing would have been recorded.
  if (trace.ops.size() == 0 && trace.frames.size() == 0) return;
  std::size_t used = 0;
  const Nanos shortest = std::max(kShortestStall, median_length(basis.run, used) / 2);
  std::vector<Hole> holes;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const Gap& gap = gaps[i];
    if (gap.owner != Owner::kIdleHostWork || !gap.call.valid() || gap.end - gap.begin < shortest) {
      continue;
    }
    holes.push_back({i, gap.begin, gap.end, trace.calls.thread[gap.call.index], {}, false, false});
  }
  // A hole in every other step is how the host works, not a stall.
  if (holes.empty() || 2 * holes.size() > used) return;
  look(trace, trace.calls, false, holes);
  look(trace, trace.ops, true, holes);
  look(trace, trace.frames, false, holes);
  for (Hole& hole : holes) {
    const bool silent = !hole.filled && longest_void(hole) >= hole.most();
    if (hole.stalls || silent) gaps[hole.gap].owner = Owner::kIdleStall;
  }
}

}  // namespace culprit::evidence
