#include "run/replays.h"

#include <algorithm>
#include <map>

#include "run/chapters.h"

namespace culprit::run {
namespace {

std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15U;
  return x ^ (x >> 29);
}

}  // namespace

Replays find_replays(const Run& run) {
  const auto& correlation = run.trace->device.correlation;
  std::vector<std::int64_t> ids;
  for (const Activity& a : run.activities)
    if (a.in_graph && (ids.empty() || ids.back() != correlation[a.row.index]))
      ids.push_back(correlation[a.row.index]);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());

  Replays replays;
  replays.of.assign(run.activities.size(), Replays::kNone);
  std::vector<std::uint32_t> replay_of_id(ids.size(), Replays::kNone);
  std::vector<RowList> members;
  for (std::uint32_t i = 0; i < run.activities.size(); ++i) {
    const Activity& a = run.activities[i];
    if (!a.in_graph) continue;
    const auto at = std::lower_bound(ids.begin(), ids.end(), correlation[a.row.index]);
    std::uint32_t& r = replay_of_id[static_cast<std::size_t>(at - ids.begin())];
    if (r == Replays::kNone) {
      r = static_cast<std::uint32_t>(replays.all.size());
      replays.all.push_back({});
      replays.all.back().first = i;
      members.emplace_back();
    }
    replays.of[i] = r;
    members[r].push_back(i);
  }
  std::vector<std::int64_t> calls(run.groups.size(), 0);
  for (std::size_t r = 0; r < members.size(); ++r) {
    Replay& replay = replays.all[r];
    for (const auto i : members[r]) {
      const Activity& a = run.activities[i];
      replay.time = capped_sum(replay.time, a.end - a.begin);
      ++replay.kernels;
      replay.repeats = std::max(replay.repeats, ++calls[a.group.index]);
      replay.signature += scatter(a.group.index + 1);
    }
    for (const auto i : members[r]) calls[run.activities[i].group.index] = 0;
  }
  return replays;
}

namespace {

// The kernels of one replay by group, sorted: one entry per kernel.
std::vector<std::uint32_t> groups_of(const Run& run, const Buckets& members, std::uint32_t replay) {
  std::vector<std::uint32_t> groups;
  for (std::uint32_t k = members.start[replay]; k < members.start[replay + 1]; ++k)
    groups.push_back(run.activities[members.rows[k]].group.index);
  std::sort(groups.begin(), groups.end());
  return groups;
}

// Replays with the same kernels.
struct Like {
  std::uint32_t first = 0;  // replay
  std::int64_t replays = 0;
  std::map<StepIndex, std::int64_t> in_step;
};

// So many replays of the class as most steps have; 0 where steps differ.
std::int64_t usual_in_a_step(const Like& like, std::size_t steps) {
  if (like.in_step.size() * 3 < steps * 2) return 0;
  std::vector<std::int64_t> counts;
  for (const auto& [step, count] : like.in_step) counts.push_back(count);
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  return *middle;
}

// Kernels that a lone replay lacks, held against the class it comes nearest to; 0: it is no torso.
std::int64_t lost_of(const Run& run, const Buckets& members, const Like& lone, StepIndex step,
                     const std::vector<const Like*>& classes) {
  const auto kernels = [&](const Like& like) {
    return std::int64_t{members.start[like.first + 1]} - members.start[like.first];
  };
  const std::vector<std::uint32_t> part = groups_of(run, members, lone.first);
  std::int64_t lost = 0;
  for (const Like* like : classes) {
    const std::int64_t more = kernels(*like) - kernels(lone);
    if (more <= 0 || (lost > 0 && more >= lost)) continue;
    const auto here = like->in_step.find(step);
    const std::int64_t in_this_step = here == like->in_step.end() ? 0 : here->second;
    if (in_this_step >= usual_in_a_step(*like, run.steps.size())) continue;
    const std::vector<std::uint32_t> whole = groups_of(run, members, like->first);
    if (std::includes(whole.begin(), whole.end(), part.begin(), part.end())) lost = more;
  }
  return lost;
}

}  // namespace

std::vector<std::int64_t> missing_in_replays(const Run& run) {
  constexpr std::size_t kFewestSteps = 3, kMostClasses = 16;
  constexpr int kMostAlone = 256;  // where more are alone, there is no class to hold them against
  std::vector<std::int64_t> missing(run.steps.size(), 0);
  if (run.steps.size() < kFewestSteps) return missing;
  const Replays replays = find_replays(run);
  std::map<std::uint64_t, Like> likes;  // by signature
  for (std::uint32_t r = 0; r < replays.all.size(); ++r) {
    Like& like = likes[replays.all[r].signature];
    if (like.replays++ == 0) like.first = r;
    ++like.in_step[run.activities[replays.all[r].first].step];
  }
  std::vector<const Like*> classes;
  for (const auto& [signature, like] : likes)
    if (like.replays > 1) classes.push_back(&like);
  std::sort(classes.begin(), classes.end(), [](const Like* a, const Like* b) {
    return std::pair{b->replays, a->first} < std::pair{a->replays, b->first};
  });
  if (classes.size() > kMostClasses) classes.resize(kMostClasses);
  const Buckets members = bucket_rows(
      run.activities.size(), replays.all.size(),
      [&](std::size_t i) { return std::min<std::size_t>(replays.of[i], replays.all.size()); });
  int alone = 0;
  for (const auto& [signature, lone] : likes) {
    const StepIndex step = run.activities[replays.all[lone.first].first].step;
    if (lone.replays == 1 && step >= 0 && ++alone <= kMostAlone)
      missing[static_cast<std::size_t>(step)] += lost_of(run, members, lone, step, classes);
  }
  return missing;
}

}  // namespace culprit::run
