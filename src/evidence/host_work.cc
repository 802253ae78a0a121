// What the host did while the device waited for its own work. Of the frames and operators of the
// blamed thread that cover most of a gap, the shortest says most.
#include <algorithm>
#include <map>

#include "evidence/evidence.h"

namespace culprit::evidence {
namespace {

constexpr double kMostOf = 0.5;  // of the gap

struct Hole {
  store::Span span;
  store::ThreadId thread;
  Nanos shortest = 0;  // of what covers it; 0: nothing yet
  store::StringId name;
  store::FrameRow frame;  // invalid: an operator's name
};

std::vector<Hole> holes_of(const Evidence& evidence) {
  std::vector<Hole> holes;
  const store::CallTable& calls = evidence.run->trace->calls;
  for (const Gap& gap : evidence.gaps) {
    if (gap.owner != known::Owner::kIdleHostWork || !gap.call.valid()) continue;
    holes.push_back({{gap.begin, gap.end}, calls.thread[gap.call.index], 0, {}, {}});
  }
  return holes;
}

// `set` is called for every hole of which the row covers more than any shorter one did.
template <class Table, class Set>
void look(const Table& table, std::vector<Hole>& holes, Set set) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    const store::Span its{table.begin[row], table.begin[row] + table.dur[row]};
    auto hole = std::upper_bound(holes.begin(), holes.end(), its.begin,
                                 [](Nanos t, const Hole& each) { return t < each.span.end; });
    for (; hole != holes.end() && hole->span.begin < its.end; ++hole) {
      const Nanos inside =
          std::min(its.end, hole->span.end) - std::max(its.begin, hole->span.begin);
      const bool covers =
          static_cast<double>(inside) >= kMostOf * static_cast<double>(hole->span.length());
      if (table.thread[row] != hole->thread || !covers) continue;
      if (hole->shortest > 0 && its.length() >= hole->shortest) continue;
      hole->shortest = its.length();
      hole->name = table.name[row];
      set(*hole, row);
    }
  }
}

}  // namespace

std::vector<HostWork> find_host_work(const Evidence& evidence) {
  const store::Trace& trace = *evidence.run->trace;
  std::vector<Hole> holes = holes_of(evidence);
  look(trace.ops, holes, [](Hole& hole, std::size_t) { hole.frame = {}; });
  look(trace.frames, holes, [](Hole& hole, std::size_t row) { hole.frame = store::FrameRow(row); });
  std::map<store::StringId, HostWork> by_name;
  for (const Hole& hole : holes) {
    HostWork& work = by_name[hole.name];
    work.name = trace.strings.or_empty(hole.name);
    work.ns_per_step += hole.span.length();
    if (!work.source && hole.frame.valid()) {
      work.source = run::source_of(*evidence.run, hole.frame);
    }
  }
  std::vector<HostWork> result;
  for (auto& [name, work] : by_name) {
    work.ns_per_step /= std::max<std::int64_t>(1, evidence.steps.used);
    result.push_back(std::move(work));
  }
  std::stable_sort(result.begin(), result.end(), [](const HostWork& a, const HostWork& b) {
    return a.ns_per_step > b.ns_per_step;
  });
  return result;
}

}  // namespace culprit::evidence
