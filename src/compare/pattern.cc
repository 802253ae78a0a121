#include "compare/pattern.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

namespace culprit::compare {
namespace {

using Places = std::vector<std::uint32_t>;
using Order = std::vector<std::uint32_t>;  // indices of activities, as launched

struct Item {
  std::uint32_t symbol = 0;
  Places places;
};

// Equality of stretches in O(1), by prefix hashes; a collision of 64 bits would fold what differs.
class Stretches {
 public:
  explicit Stretches(const std::vector<std::uint32_t>& ids)
      : prefix_(ids.size() + 1, 0), power_(ids.size() + 1, 1) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      prefix_[i + 1] = prefix_[i] * kBase + ids[i] + 1;
      power_[i + 1] = power_[i] * kBase;
    }
  }
  bool equal(std::size_t a, std::size_t b, std::size_t length) const {
    return b + length < prefix_.size() && hash(a, length) == hash(b, length);
  }

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ULL;
  std::uint64_t hash(std::size_t at, std::size_t length) const {
    return prefix_[at + length] - prefix_[at] * power_[length];
  }
  std::vector<std::uint64_t> prefix_, power_;
};

// Items of one symbol and one number of places are alike.
std::vector<std::uint32_t> ids_of(const std::vector<Item>& items) {
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> known;
  std::vector<std::uint32_t> ids;
  ids.reserve(items.size());
  for (const Item& item : items)
    ids.push_back(known.try_emplace({item.symbol, item.places.size()}, known.size()).first->second);
  return ids;
}

struct Repeat {
  std::size_t length = 1, times = 1;
};

// The stretch from `at` that covers most by coming again at once; of equal ones the shortest.
Repeat longest_repeat(const Stretches& stretches, const std::vector<std::size_t>& next,
                      std::size_t at) {
  constexpr int kTried = 64;  // distances to the next items of this kind
  Repeat best;
  std::size_t again = next[at];
  for (int tried = 0; tried < kTried && again < next.size(); ++tried, again = next[again]) {
    const std::size_t length = again - at;
    std::size_t times = 1;
    while (stretches.equal(at, at + times * length, length)) ++times;
    const bool better = times > 1 && (best.times == 1 || times * length > best.times * best.length);
    if (better) best = {length, times};
  }
  return best;
}

std::vector<Item> fold_once(std::vector<Item> items) {
  const std::vector<std::uint32_t> ids = ids_of(items);
  const Stretches stretches(ids);
  std::vector<std::size_t> next(items.size(), items.size());
  std::unordered_map<std::uint32_t, std::size_t> seen;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (const auto found = seen.find(ids[i]); found != seen.end()) next[i] = found->second;
    seen[ids[i]] = i;
  }
  std::vector<Item> out;
  for (std::size_t at = 0; at < items.size();) {
    const Repeat repeat = longest_repeat(stretches, next, at);
    for (std::size_t j = 0; j < repeat.length; ++j) {
      Item item = std::move(items[at + j]);
      for (std::size_t k = 1; k < repeat.times; ++k) {
        const Places& more = items[at + k * repeat.length + j].places;
        item.places.insert(item.places.end(), more.begin(), more.end());
      }
      out.push_back(std::move(item));
    }
    at += repeat.length * repeat.times;
  }
  return out;
}

std::vector<Item> fold_items(const std::vector<std::uint32_t>& symbols) {
  std::vector<Item> items;
  items.reserve(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i)
    items.push_back({symbols[i], {static_cast<std::uint32_t>(i)}});
  constexpr int kDeepest = 4;  // repeats within repeats: experts of a layer, layers of a block
  for (int depth = 0; depth < kDeepest; ++depth) {
    const std::size_t size = items.size();
    items = fold_once(std::move(items));
    if (items.size() == size) break;
  }
  return items;
}

// One item a symbol, in order of first appearance.
std::vector<Item> by_symbol(const std::vector<std::uint32_t>& symbols) {
  std::unordered_map<std::uint32_t, std::size_t> at;
  std::vector<Item> items;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const auto [entry, is_new] = at.try_emplace(symbols[i], items.size());
    if (is_new) items.push_back({symbols[i], {}});
    items[entry->second].places.push_back(static_cast<std::uint32_t>(i));
  }
  return items;
}

// Activities of a step by their launch; where one has none in the file, by their begin on the device:
// the two clocks are never mixed. Kernels of one replay keep their order on the device.
Order launch_order(const run::Run& run, const run::Step& step) {
  Order order;
  bool launched = true;
  for (std::int64_t i = step.first; i < step.last; ++i) {
    order.push_back(static_cast<std::uint32_t>(i));
    launched &= run.activities[static_cast<std::size_t>(i)].call.valid();
  }
  if (!launched) return order;
  const auto& begin = run.trace->calls.begin;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return begin[run.activities[a].call.index] < begin[run.activities[b].call.index];
  });
  return order;
}

const run::Step* median_step(const run::Run& run) {
  std::vector<const run::Step*> used;
  for (const run::Step& step : run.steps)
    if (step.used) used.push_back(&step);
  if (used.empty()) return nullptr;
  std::stable_sort(used.begin(), used.end(), [](const run::Step* a, const run::Step* b) {
    return a->length() < b->length();
  });
  return used[(used.size() - 1) / 2];
}

// Symbols: kernel names; where a name comes with few grids in the step, each of them is one.
std::vector<std::uint32_t> symbols_of(const run::Run& run, const Order& order) {
  constexpr std::size_t kFewGrids = 4;
  using Shape = std::pair<store::Dim3, store::Dim3>;
  std::unordered_map<std::uint32_t, std::set<Shape>> grids;
  const auto group_of = [&](std::uint32_t i) -> const run::Group& {
    return run.groups[run.activities[i].group.index];
  };
  for (const std::uint32_t i : order) {
    const run::Group& group = group_of(i);
    auto& of_name = grids[group.name.index];
    if (of_name.size() <= kFewGrids) of_name.insert({group.grid, group.block});
  }
  std::map<std::pair<std::uint32_t, Shape>, std::uint32_t> known;
  std::vector<std::uint32_t> symbols;
  for (const std::uint32_t i : order) {
    const run::Group& group = group_of(i);
    const bool few = grids[group.name.index].size() <= kFewGrids;
    const Shape shape = few ? Shape{group.grid, group.block} : Shape{};
    symbols.push_back(known.try_emplace({group.name.index, shape}, known.size()).first->second);
  }
  return symbols;
}

// Counts the activities of all used steps into slots.
class Counter {
 public:
  Counter(const run::Run& run, const evidence::Evidence& evidence, std::vector<Slot>& slots)
      : run_(run), slots_(slots), exposed_(run.groups.size(), 0) {
    for (const evidence::KernelFigures& kernel : evidence.kernels) {
      if (kernel.ns_per_step <= 0) continue;
      exposed_[kernel.group.index] =
          static_cast<double>(kernel.exposed_ns_per_step) / static_cast<double>(kernel.ns_per_step);
    }
  }

  void place(std::uint32_t activity, std::size_t slot) { of_name_[name(activity)].push_back(slot); }

  void count(const Order& order) {
    std::unordered_map<std::uint32_t, std::size_t> seen;
    for (const std::uint32_t i : order) {
      std::vector<std::size_t>& places = of_name_[name(i)];
      if (places.empty()) {  // not in the median step
        places.push_back(slots_.size());
        slots_.push_back({});
      }
      add(i, places[std::min(seen[name(i)]++, places.size() - 1)]);
    }
  }

  void finish() {
    groups_.resize(slots_.size());
    exposed_time_.resize(slots_.size(), 0);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const auto most =
          std::max_element(groups_[s].begin(), groups_[s].end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most == groups_[s].end()) continue;
      slots_[s].group = run::GroupId(most->first);
      slots_[s].role = run_.groups[most->first].kind;
      slots_[s].name = run_.groups[most->first].name;
      slots_[s].exposed = std::llround(exposed_time_[s]);
    }
  }

 private:
  std::uint32_t name(std::uint32_t activity) const {
    return run_.groups[run_.activities[activity].group.index].name.index;
  }

  void add(std::uint32_t activity, std::size_t slot) {
    const run::Activity& a = run_.activities[activity];
    groups_.resize(slots_.size());
    exposed_time_.resize(slots_.size(), 0);
    ++slots_[slot].calls;
    slots_[slot].time += a.end - a.begin;
    exposed_time_[slot] += exposed_[a.group.index] * static_cast<double>(a.end - a.begin);
    ++groups_[slot][a.group.index];
  }

  const run::Run& run_;
  std::vector<Slot>& slots_;
  std::vector<double> exposed_;  // share of its time, by group
  std::vector<double> exposed_time_;
  std::vector<std::map<std::uint32_t, std::int64_t>> groups_;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> of_name_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> fold(const std::vector<std::uint32_t>& symbols) {
  std::vector<std::vector<std::uint32_t>> out;
  for (Item& item : fold_items(symbols)) out.push_back(std::move(item.places));
  return out;
}

Pattern find_pattern(const run::Run& run, const evidence::Evidence& evidence, std::size_t most) {
  Pattern pattern;
  const run::Step* median = median_step(run);
  if (median == nullptr) return pattern;
  const Order order = launch_order(run, *median);
  const std::vector<std::uint32_t> symbols = symbols_of(run, order);
  std::vector<Item> items = fold_items(symbols);
  if (items.size() > most) items = by_symbol(symbols);
  std::vector<std::size_t> slot_at(order.size());
  for (std::size_t s = 0; s < items.size(); ++s) {
    Slot& slot = pattern.slots.emplace_back();
    slot.in_step = static_cast<std::int64_t>(items[s].places.size());
    for (const std::uint32_t place : items[s].places) slot_at[place] = s;
  }
  pattern.in_order = std::min(items.size(), most);
  Counter counter(run, evidence, pattern.slots);
  for (std::size_t i = 0; i < order.size(); ++i) counter.place(order[i], slot_at[i]);
  for (const run::Step& step : run.steps)
    if (step.used) counter.count(&step == median ? order : launch_order(run, step));
  counter.finish();
  return pattern;
}

}  // namespace culprit::compare
