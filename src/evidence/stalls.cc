// Stalls: rare holes in which the host made no call and nothing else was recorded on its thread
// either (a garbage collection, the operating system), or in which it compiled or collected.
#include <algorithm>
#include <string_view>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using known::Owner;

// A hole of half a usual step is what users feel as a stutter; shorter ones are host work.
constexpr Nanos kShortestStall = 1'000'000;

bool stalls_by_name(std::string_view frame) {
  for (std::string_view part : {"gc.collect", "gc_collect", "/_dynamo/", "/_inductor/",
                                "triton/compiler", "triton/runtime/build"}) {
    if (frame.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// What is recorded inside the candidates, one flag per candidate.
struct Seen {
  std::vector<bool> any, stall;
};

// `candidates`: gaps in time order. Marks those in which a row of `table` begins on their thread.
template <class Table>
void look(const run::Run& run, const Table& table, const std::vector<const Gap*>& candidates,
          Seen& seen) {
  const store::Trace& trace = *run.trace;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto after =
        std::upper_bound(candidates.begin(), candidates.end(), table.begin[row],
                         [](Nanos t, const Gap* gap) { return t < gap->begin; });
    if (after == candidates.begin()) continue;
    const Gap& gap = **(after - 1);
    if (table.begin[row] >= gap.end || table.thread[row] != trace.calls.thread[gap.call.index]) {
      continue;
    }
    const auto i = static_cast<std::size_t>(after - 1 - candidates.begin());
    seen.any[i] = true;
    if (stalls_by_name(trace.strings.or_empty(table.name[row]))) seen.stall[i] = true;
  }
}

}  // namespace

void find_stalls(const Basis& basis, std::vector<Gap>& gaps) {
  const store::Trace& trace = *basis.run.trace;
  // Without operators and frames an empty hole proves nothing: nothing would have been recorded.
  if (trace.ops.size() == 0 && trace.frames.size() == 0) return;
  std::vector<Nanos> lengths;
  for (const run::Step& step : basis.run.steps) {
    if (step.used) lengths.push_back(step.length());
  }
  if (lengths.empty()) return;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const Nanos shortest = std::max(kShortestStall, *middle / 2);

  std::vector<const Gap*> candidates;
  for (const Gap& gap : gaps) {
    const bool long_enough = gap.end - gap.begin >= shortest;
    if (gap.owner == Owner::kIdleHostWork && gap.call.valid() && long_enough) {
      candidates.push_back(&gap);
    }
  }
  // A hole in every other step is how the host works, not a stall.
  if (candidates.empty() || 2 * candidates.size() > lengths.size()) return;
  Seen seen{std::vector<bool>(candidates.size()), std::vector<bool>(candidates.size())};
  look(basis.run, trace.ops, candidates, seen);
  look(basis.run, trace.frames, candidates, seen);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (seen.stall[i] || !seen.any[i]) {
      gaps[static_cast<std::size_t>(candidates[i] - gaps.data())].owner = Owner::kIdleStall;
    }
  }
}

}  // namespace culprit::evidence
