// Steps from graph launches whose kernels are not in the file. What runs beside them (inputs,
// sampling) is recorded, and is alike from replay to replay. Where on the device a replay began is
// unknown, so a step goes from the first activity launched behind one graph launch to that behind
// the next: it holds one whole replay.
#include <algorithm>

#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::CallRow;

// Unrecorded graph launches of the thread with most of them, in time order.
std::vector<CallRow> launches_of_main_thread(const Run& run) {
  const auto& calls = run.trace->calls;
  std::vector<std::int64_t> count(run.trace->threads.size(), 0);
  for (const CallRow launch : run.graphs_without_kernels) ++count[calls.thread[launch.index].index];
  const auto main =
      static_cast<std::uint32_t>(std::max_element(count.begin(), count.end()) - count.begin());
  std::vector<CallRow> launches;
  for (const CallRow launch : run.graphs_without_kernels)
    if (calls.thread[launch.index].index == main) launches.push_back(launch);
  std::stable_sort(launches.begin(), launches.end(), [&](CallRow a, CallRow b) {
    return calls.begin[a.index] < calls.begin[b.index];
  });
  return launches;
}

// Activities launched behind each graph launch and before the next; [0]: before the first.
std::vector<std::vector<std::uint32_t>> stretches_of(const Run& run,
                                                     const std::vector<CallRow>& launches) {
  const auto& calls = run.trace->calls;
  const store::ThreadId thread = calls.thread[launches.front().index];
  std::vector<std::vector<std::uint32_t>> stretches(launches.size() + 1);
  for (std::uint32_t i = 0; i < run.activities.size(); ++i) {
    const CallRow call = run.activities[i].call;
    if (!call.valid() || calls.thread[call.index] != thread) continue;
    const auto next =
        std::upper_bound(launches.begin(), launches.end(), calls.begin[call.index],
                         [&](Nanos at, CallRow launch) { return at < calls.begin[launch.index]; });
    stretches[static_cast<std::size_t>(next - launches.begin())].push_back(i);
  }
  return stretches;
}

std::vector<std::uint32_t> groups_in(const Run& run, const std::vector<std::uint32_t>& stretch) {
  std::vector<std::uint32_t> groups;
  groups.reserve(stretch.size());
  for (const auto i : stretch) groups.push_back(run.activities[i].group.index);
  std::sort(groups.begin(), groups.end());
  return groups;
}

// Four fifths of either are the other's.
bool alike(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.size() * 5 >= std::max(a.size(), b.size()) * 4;
}

bool holds_attention(const Run& run, const std::vector<std::uint32_t>& stretch) {
  return std::any_of(stretch.begin(), stretch.end(), [&](std::uint32_t i) {
    return run.activities[i].kind == known::Owner::kAttention;
  });
}

// Is every launch a whole step? Pieces of one have attention, or other things, between them.
bool whole_steps(const Run& run, const std::vector<std::vector<std::uint32_t>>& stretches) {
  const std::vector<std::uint32_t> model = groups_in(run, stretches[stretches.size() / 2]);
  std::size_t like = 0, compared = 0;
  for (std::size_t k = 1; k + 1 < stretches.size(); ++k) {
    if (stretches[k].empty() || holds_attention(run, stretches[k])) return false;
    ++compared;
    if (alike(groups_in(run, stretches[k]), model)) ++like;
  }
  return compared > 0 && like * 10 >= compared * 9;
}

}  // namespace

bool find_unrecorded_steps(Run& run) {
  if (run.graphs_without_kernels.size() < 2) return false;
  const std::vector<CallRow> launches = launches_of_main_thread(run);
  if (launches.size() < 2) return false;
  const auto stretches = stretches_of(run, launches);
  if (!whole_steps(run, stretches)) return false;
  std::vector<Nanos> bounds;
  for (const auto& stretch : stretches)
    if (!stretch.empty()) bounds.push_back(run.activities[stretch.front()].begin);
  std::sort(bounds.begin(), bounds.end());
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    Step step;
    step.begin = bounds[i];
    step.end = bounds[i + 1];
    if (step.end > step.begin) run.steps.push_back(std::move(step));
  }
  run.how = StepsHow::kGraphReplay;
  return !run.steps.empty();
}

}  // namespace culprit::run
