#include "run/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "run/call_sites.h"
#include "run/chapters.h"
#include "run/replays.h"

namespace culprit::run {

std::uint32_t SymbolTable::of(std::string_view kernel, store::DeviceKind kind) {
  const auto has = [&](std::string_view part) {
    return kernel.find(part) != std::string_view::npos;
  };
  if (kind == store::DeviceKind::kMemset || has("__amd_rocclr_fillBuffer")) return kSet;
  if (kind == store::DeviceKind::kMemcpy || has("__amd_rocclr_copyBuffer")) return kCopy;
  if (kernel.empty()) return kUnnamed;
  return names_.try_emplace(std::string(kernel), static_cast<std::uint32_t>(names_.size()) + 3)
      .first->second;
}

namespace {

using Place = std::uint32_t;

// Activities of each replay, in the order in which the device began them.
std::vector<std::vector<std::uint32_t>> members_of(const Run& run) {
  const Replays replays = find_replays(run);
  std::vector<std::vector<std::uint32_t>> members(replays.all.size());
  for (std::uint32_t i = 0; i < replays.of.size(); ++i)
    if (replays.of[i] != Replays::kNone) members[replays.of[i]].push_back(i);
  return members;
}

// By node where every activity has a node of its own.
bool order_by_node(const Run& run, std::vector<std::uint32_t>& activities) {
  const auto node = [&](std::uint32_t i) {
    return run.trace->device.graph_node[run.activities[i].row.index];
  };
  std::vector<std::uint32_t> ordered = activities;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](auto a, auto b) { return node(a) < node(b); });
  if (ordered.empty() || node(ordered.front()) < 0) return false;
  const auto same = [&](auto a, auto b) { return node(a) == node(b); };
  if (std::adjacent_find(ordered.begin(), ordered.end(), same) != ordered.end()) return false;
  activities.swap(ordered);
  return true;
}

// Stream after stream; returns where each ends.
std::vector<std::size_t> order_by_stream(const Run& run, std::vector<std::uint32_t>& activities) {
  const auto stream = [&](std::uint32_t i) {
    return run.trace->device.thread[run.activities[i].row.index].index;
  };
  std::stable_sort(activities.begin(), activities.end(),
                   [&](auto a, auto b) { return stream(a) < stream(b); });
  std::vector<std::size_t> ends;
  for (std::size_t k = 1; k <= activities.size(); ++k)
    if (k == activities.size() || stream(activities[k]) != stream(activities[k - 1]))
      ends.push_back(k);
  return ends;
}

Symbols symbols_of(const Run& lender, const Script& script, SymbolTable& symbols) {
  Symbols result;
  result.reserve(script.launches.size());
  for (const Launched& launched : script.launches)
    result.push_back(symbols.of(lender.trace->strings.or_empty(launched.kernel), launched.kind));
  return result;
}

bool may_be(std::uint32_t launched, std::uint32_t ran) {
  return launched == ran || (launched == SymbolTable::kUnnamed && ran > SymbolTable::kCopy);
}

// Pairs each stream with what others have left of the script, until nothing more is certain.
std::vector<Place> pair_streams(const ReplayKind& replays, const Symbols& script) {
  std::vector<Place> launch(replays.symbols.size(), kUnpaired);
  std::vector<std::uint8_t> taken(script.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    std::size_t begin = 0;
    for (const std::size_t end : replays.streams) {
      Symbols part, whole;
      std::vector<Place> part_at, whole_at;
      for (std::size_t i = begin; i < end; ++i) {
        if (launch[i] != kUnpaired) continue;
        part.push_back(replays.symbols[i]);
        part_at.push_back(static_cast<Place>(i));
      }
      for (std::size_t k = 0; k < script.size(); ++k) {
        if (taken[k] != 0) continue;
        whole.push_back(script[k]);
        whole_at.push_back(static_cast<Place>(k));
      }
      const std::vector<Place> places = pair_up(part, whole);
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] == kUnpaired) continue;
        launch[part_at[i]] = whole_at[places[i]];
        taken[whole_at[places[i]]] = 1;
        progress = replays.streams.size() > 1;
      }
      begin = end;
    }
  }
  return launch;
}

std::int64_t count_paired(const std::vector<Place>& launch) {
  return static_cast<std::int64_t>(launch.size()) -
         std::count(launch.begin(), launch.end(), kUnpaired);
}

void pair_by_names(const ReplayKind& replays, const Symbols& script, Match& found) {
  constexpr std::int64_t kMostOf = 5;  // four fifths of the kernels, or it is another graph
  found.launch = pair_streams(replays, script);
  found.paired = count_paired(found.launch);
  const auto all = static_cast<std::int64_t>(found.launch.size());
  if (found.paired == all) return;
  found.why_not = fmt::format("{} of {} stand in it in this order by name", found.paired,
                              counted(all, "kernel", "kernels"));
  if (found.paired * kMostOf >= all * (kMostOf - 1)) return;
  found.launch.assign(found.launch.size(), kUnpaired);
  found.paired = 0;
}

// A capture without its begin or its end: what there is must be the graph's end, or its begin.
void pair_part(const ReplayKind& replays, const Script& script, const Symbols& launched,
               Match& found) {
  constexpr std::size_t kFewest = 16;
  const std::size_t all = replays.symbols.size();
  const std::size_t part = std::min(launched.size(), all);
  std::size_t alike = 0;
  const auto same = [&](std::size_t k) {
    return script.cut_front ? launched[launched.size() - 1 - k] == replays.symbols[all - 1 - k]
                            : launched[k] == replays.symbols[k];
  };
  while (alike < part && same(alike)) ++alike;
  found.why_not = fmt::format("the recording of the capture is cut: {} of {} launches are in it",
                              launched.size(), all);
  if (script.cut_front && script.cut_back) return;
  if (alike < kFewest || alike + 1 < launched.size()) return;  // the last may be cut as well
  for (std::size_t k = 0; k < alike; ++k) {
    const std::size_t at = script.cut_front ? all - 1 - k : k;
    found.launch[at] = static_cast<Place>(script.cut_front ? launched.size() - 1 - k : k);
  }
  found.paired = static_cast<std::int64_t>(alike);
}

bool fits_one_to_one(const ReplayKind& replays, const Symbols& launched) {
  return replays.streams.size() == 1 &&
         std::equal(launched.begin(), launched.end(), replays.symbols.begin(),
                    replays.symbols.end(), may_be);
}

// The n-th launch is the n-th kernel, as far as the call sites bear it out.
void pair_by_order(const Run& run, const ReplayKind& replays, const Run& lender,
                   const Script& script, const Symbols& launched, Match& found) {
  if (script.cut_front || script.cut_back) {
    found.why_not = "the recording of the capture is cut, and it names no kernels";
  } else if (replays.streams.size() > 1) {
    found.why_not = fmt::format(
        "the capture names no kernels, and the replay ran them on {} streams: their order is lost",
        replays.streams.size());
  } else if (launched.size() != replays.symbols.size()) {
    found.why_not =
        fmt::format("the capture names no kernels and has {}, the replay ran {}: places are unsure",
                    counted(static_cast<std::int64_t>(launched.size()), "launch", "launches"),
                    replays.symbols.size());
  } else if (!fits_one_to_one(replays, launched)) {
    found.why_not = "copies and sets stand at other places in the capture than in the replay";
  } else {
    const CallSites sites =
        check_call_sites(run, replays.members.front(), lender, script, replays.symbols);
    found.why_not = sites.why_not;
    for (std::size_t i = 0; i < sites.holds.size(); ++i)
      if (sites.holds[i] != 0) found.launch[i] = static_cast<Place>(i);
    found.paired = count_paired(found.launch);
  }
}

}  // namespace

std::vector<ReplayKind> replay_kinds(const Run& run, SymbolTable& symbols) {
  std::vector<std::uint32_t> symbol_of_group;
  for (const Group& group : run.groups)
    symbol_of_group.push_back(
        symbols.of(run.trace->strings.or_empty(group.name), group.device_kind));
  using Key = std::tuple<Symbols, std::vector<std::size_t>, std::optional<std::int64_t>,
                         std::optional<std::int64_t>>;
  std::map<Key, std::size_t> known;
  std::vector<ReplayKind> kinds;
  for (std::vector<std::uint32_t>& activities : members_of(run)) {
    ReplayKind kind;
    if (order_by_node(run, activities))
      kind.streams.push_back(activities.size());
    else
      kind.streams = order_by_stream(run, activities);
    for (const auto i : activities)
      kind.symbols.push_back(symbol_of_group[run.activities[i].group.index]);
    if (const StepIndex s = run.activities[activities.front()].step; s >= 0) {
      kind.batch = run.steps[static_cast<std::size_t>(s)].batch;
      kind.tokens = run.steps[static_cast<std::size_t>(s)].tokens;
    }
    const auto [at, fresh] =
        known.try_emplace(Key{kind.symbols, kind.streams, kind.batch, kind.tokens}, kinds.size());
    if (fresh) kinds.push_back(std::move(kind));
    kinds[at->second].members.push_back(std::move(activities));
  }
  return kinds;
}

Match match(const Run& run, const ReplayKind& replays, const Run& lender, const Script& script,
            SymbolTable& symbols) {
  const Symbols launched = symbols_of(lender, script, symbols);
  const auto unnamed = std::count(launched.begin(), launched.end(), SymbolTable::kUnnamed);
  Match found;
  found.launch.assign(replays.symbols.size(), kUnpaired);
  const bool by_names = 2 * static_cast<std::size_t>(unnamed) < launched.size();
  found.verified_by = by_names ? "names" : "order";
  if (!by_names) {
    pair_by_order(run, replays, lender, script, launched, found);
  } else if (fits_one_to_one(replays, launched)) {
    for (std::size_t i = 0; i < launched.size(); ++i) found.launch[i] = static_cast<Place>(i);
    found.paired = static_cast<std::int64_t>(launched.size());
  } else if (script.cut_front || script.cut_back) {
    if (replays.streams.size() == 1)
      pair_part(replays, script, launched, found);
    else
      found.why_not = "the recording of the capture is cut, and the replay ran on several streams";
  } else {
    pair_by_names(replays, launched, found);
  }
  return found;
}

}  // namespace culprit::run
