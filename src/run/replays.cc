#include "run/replays.h"

#include <algorithm>

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

}  // namespace culprit::run
