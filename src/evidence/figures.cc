// Figures per kernel group: how often, how long, and where its calls come from.
#include <algorithm>
#include <numeric>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

// The value that occurs most often (ties: the smallest); invalid ids do not count.
template <class Id>
Id most_common(std::vector<Id>& values) {
  std::sort(values.begin(), values.end());
  Id best;
  std::size_t best_count = 0;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t next = i;
    while (next < values.size() && values[next] == values[i]) ++next;
    if (values[i].valid() && next - i > best_count) {
      best = values[i];
      best_count = next - i;
    }
    i = next;
  }
  return best;
}

// Names by how often they occur; the kernels of a group have few distinct operators.
class NameCount {
 public:
  void add(std::string_view name) {
    const auto known = std::find_if(counts_.begin(), counts_.end(), [&](const auto& entry) {
      return entry.first.data() == name.data() || entry.first == name;
    });
    if (known == counts_.end())
      counts_.emplace_back(name, 1);
    else
      ++known->second;
  }
  // Ties: the first in the alphabet. Empty where nothing was added.
  std::string_view most_common() const {
    std::pair<std::string_view, std::int64_t> best{{}, 0};
    for (const auto& entry : counts_)
      if (entry.second > best.second || (entry.second == best.second && entry.first < best.first))
        best = entry;
    return best.first;
  }

 private:
  std::vector<std::pair<std::string_view, std::int64_t>> counts_;
};

// The source line behind the most calls, from up to kSamples calls spread over all of them: asking
// for every call costs more than all other measures together. The stride is odd, so that it does not
// fall into step with calls that alternate.
std::optional<run::Source> most_common_source(const run::Run& run,
                                              std::span<const run::ActivityId> members) {
  constexpr std::size_t kSamples = 15;
  const std::size_t stride = std::max<std::size_t>(1, members.size() / kSamples) | 1U;
  std::vector<std::pair<run::Source, int>> counts;
  for (std::size_t i = 0; i < members.size(); i += stride) {
    const run::Activity& activity = run.activities[members[i].index];
    const run::Origin origin = run::origin_of(run, activity);
    const std::optional<run::Source> source = run::source_of(*origin.run, origin.call);
    if (!source) continue;
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& entry) { return entry.first == *source; });
    if (known == counts.end()) {
      counts.emplace_back(*source, 1);
    } else {
      ++known->second;
    }
  }
  const auto best =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == counts.end()) return std::nullopt;
  return best->first;
}

void trace_back(const run::Run& run, std::span<const run::ActivityId> members,
                KernelFigures& figures) {
  const store::Trace& trace = *run.trace;
  std::vector<store::StringId> apis, threads;
  NameCount ops;
  figures.in_replay = true;
  for (const run::ActivityId id : members) {
    const run::Activity& activity = run.activities[id.index];
    const run::Origin origin = run::origin_of(run, activity);
    if (origin.op.valid()) ops.add(run::op_name(origin));
    figures.lent |= origin.lent;
    figures.in_replay &= activity.in_graph;
    if (!activity.call.valid()) continue;
    apis.push_back(trace.calls.name[activity.call.index]);
    const store::ThreadId thread = trace.calls.thread[activity.call.index];
    if (thread.valid()) threads.push_back(trace.threads[thread.index].tid);
  }
  figures.op = ops.most_common();
  figures.api = most_common(apis);
  figures.launch_thread = most_common(threads);
  for (const run::ActivityId id : members) {
    const run::Origin origin = run::origin_of(run, run.activities[id.index]);
    if (figures.op.empty() || run::op_name(origin) != figures.op) continue;
    for (const store::StringId op : run::op_chain(*origin.run, origin.op))
      figures.op_chain.emplace_back(origin.run->trace->strings[op]);
    break;
  }
  figures.source = most_common_source(run, members);
}

}  // namespace

Members::Members(const run::Run& run) : starts_(run.groups.size() + 1, 0) {
  const auto for_each = [&](auto&& visit) {
    for (const run::Step& step : run.steps) {
      for (std::int64_t i = step.first; step.used && i < step.last; ++i) {
        visit(run::ActivityId(static_cast<std::size_t>(i)));
      }
    }
  };
  for_each([&](run::ActivityId id) { ++starts_[run.activities[id.index].group.index + 1]; });
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  ids_.resize(starts_.back());
  std::vector<std::size_t> place(starts_.begin(), starts_.end() - 1);
  for_each([&](run::ActivityId id) { ids_[place[run.activities[id.index].group.index]++] = id; });
}

std::span<const run::ActivityId> Members::of(run::GroupId group) const {
  return std::span(ids_).subspan(starts_[group.index],
                                 starts_[group.index + 1] - starts_[group.index]);
}

std::vector<KernelFigures> measure_kernels(const Basis& basis, const Members& members,
                                           const Exposed& exposed) {
  const run::Run& run = basis.run;
  const Nanos step = basis.mean;
  std::vector<KernelFigures> kernels;
  for (std::size_t i = 0; i < run.groups.size(); ++i) {
    const run::GroupId group(i);
    const std::span<const run::ActivityId> calls = members.of(group);
    if (calls.empty()) continue;
    Nanos total = 0;
    for (const run::ActivityId id : calls) {
      total += run.activities[id.index].end - run.activities[id.index].begin;
    }
    const auto count = static_cast<std::int64_t>(calls.size());
    KernelFigures figures;
    figures.group = group;
    figures.calls = count;
    figures.calls_per_step = static_cast<double>(count) / static_cast<double>(basis.steps);
    figures.ns_per_step = basis.per_step(total);
    if (step > 0)
      figures.share = static_cast<double>(figures.ns_per_step) / static_cast<double>(step);
    figures.avg_ns = (total + count / 2) / count;
    figures.exposed_ns_per_step = basis.per_step(exposed.by_group[i]);
    trace_back(run, calls, figures);
    weigh(run, calls, figures);
    kernels.push_back(std::move(figures));
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.ns_per_step > b.ns_per_step; });
  return kernels;
}

}  // namespace culprit::evidence
