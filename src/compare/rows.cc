#include "compare/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/text.h"

namespace culprit::compare {
namespace {

using evidence::KernelFigures;

constexpr double kAlike = 0.01;  // of a kernel's own time or calls: no change

// A run's pattern with what its slots are compared and shown by.
struct Listing {
  const Input& input;
  Pattern pattern;
  std::vector<Mark> marks;
  std::vector<std::size_t> figures;  // by slot: index into Evidence::kernels

  explicit Listing(const Input& of)
      : input(of), pattern(find_pattern(of.run, of.evidence, kMostSlots)) {
    std::vector<std::size_t> by_group(of.run.groups.size(), 0);
    for (std::size_t k = 0; k < of.evidence.kernels.size(); ++k)
      by_group[of.evidence.kernels[k].group.index] = k;
    for (const Slot& slot : pattern.slots) {
      const run::Group& group = of.run.groups[slot.group.index];
      const std::string_view name = of.run.trace->strings.or_empty(slot.name);
      figures.push_back(by_group[slot.group.index]);
      const std::string_view op = of.evidence.kernels[figures.back()].op;
      marks.push_back(
          {name, name.substr(0, name.find('<')), op, slot.role, group.grid, slot.in_step});
    }
  }
};

using Key = std::tuple<std::string_view, store::Dim3, std::string_view, store::Dim3, std::int64_t>;

// Sums over the used steps, until they are divided.
struct Sum {
  std::int64_t calls = 0;
  Nanos time = 0, exposed = 0;
  Nanos most = -1;        // time of the slot that is shown
  std::size_t shown = 0;  // slot
  void add(const Slot& slot, std::size_t index) {
    calls += slot.calls;
    time += slot.time;
    exposed += slot.exposed;
    if (slot.time <= most) return;
    most = slot.time;
    shown = index;
  }
};

struct Draft {
  Sum before, after;
  std::vector<run::GroupId> before_groups, after_groups;
  std::vector<std::size_t> before_kernels, after_kernels;
};

template <class T>
void add_once(std::vector<T>& list, T value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

Nanos per_step(Nanos total, std::int64_t steps) {
  return steps > 0 ? (total + steps / 2) / steps : 0;
}

KernelSide side_of(const Listing& listing, const Sum& sum) {
  const Slot& slot = listing.pattern.slots[sum.shown];
  const run::Group& group = listing.input.run.groups[slot.group.index];
  const KernelFigures& figures = listing.input.evidence.kernels[listing.figures[sum.shown]];
  const std::int64_t steps = listing.input.evidence.steps.used;
  KernelSide side;
  side.name = listing.input.run.trace->strings.or_empty(slot.name);
  side.short_name = group.info.short_name.empty() ? side.name : group.info.short_name;
  side.calls_per_step =
      static_cast<double>(sum.calls) / static_cast<double>(std::max<std::int64_t>(1, steps));
  side.ns_per_step = per_step(sum.time, steps);
  side.avg_ns = per_step(sum.time, sum.calls);
  side.grid = group.grid;
  side.block = group.block;
  side.bytes = figures.bytes;
  if (figures.elements_exact)
    side.elements = figures.elements_exact;
  else if (figures.elements)
    side.elements = figures.elements->max;
  side.dims = figures.dims;
  side.op = figures.op;
  side.source = figures.source;
  return side;
}

std::string place_of(const run::Run& run, double calls) {
  const std::int64_t layers = run.layers.count.value_or(0);
  if (layers < 2) return {};
  const double per_layer = calls / static_cast<double>(layers);
  if (per_layer >= 1) return "every layer";
  if (per_layer >= 0.5) return fmt::format("{} of {} layers", std::llround(calls), layers);
  return "outside the layers";
}

bool alike(double a, double b) { return std::fabs(a - b) <= kAlike * std::max(a, b); }

Change change_of(const KernelChange& row) {
  if (!row.before) return Change::kNew;
  if (!row.after) return Change::kGone;
  const KernelSide &a = *row.before, &b = *row.after;
  if (a.name != b.name) return Change::kReplaced;
  if (!alike(a.calls_per_step, b.calls_per_step))
    return b.calls_per_step > a.calls_per_step ? Change::kMoreCalls : Change::kFewerCalls;
  const bool recorded = a.grid != store::Dim3{} && b.grid != store::Dim3{};
  const double blocks_a = 1.0 * a.grid[0] * a.grid[1] * a.grid[2];
  const double blocks_b = 1.0 * b.grid[0] * b.grid[1] * b.grid[2];
  if (recorded && blocks_a != blocks_b)
    return blocks_b > blocks_a ? Change::kLargerGrid : Change::kSmallerGrid;
  const auto before = static_cast<double>(a.ns_per_step),
             after = static_cast<double>(b.ns_per_step);
  if (alike(before, after)) return Change::kSame;
  return after > before ? Change::kSlower : Change::kFaster;
}

bool one_became_several(std::pair<std::size_t, std::size_t> counts) {
  return std::min(counts.first, counts.second) == 1 && std::max(counts.first, counts.second) > 1;
}

// Region of each pair: -1 for anchors; equal between two anchors, and for the same kernels elsewhere.
class Regions {
 public:
  Regions(const Listing& before, const Listing& after, const std::vector<Pair>& pairs)
      : before_(before), after_(after), of_pair_(pairs.size(), -1) {
    for (std::size_t p = 0; p < pairs.size();) {
      std::size_t end = p;
      while (end < pairs.size() && !pairs[end].anchor) ++end;
      if (end > p) enter(pairs, p, end);
      p = end + 1;
    }
  }
  std::int64_t of(std::size_t pair) const { return of_pair_[pair]; }
  // Kernels before and after of a region whose kernels all come as often; {0, 0}: of others.
  std::pair<std::size_t, std::size_t> counts(std::size_t region) const { return counts_[region]; }
  std::size_t size() const { return counts_.size(); }
  bool is_fusion(std::int64_t region) const {
    return region >= 0 && one_became_several(counts_[static_cast<std::size_t>(region)]);
  }

 private:
  using Signature = std::pair<std::vector<std::string_view>, std::vector<std::string_view>>;

  void enter(const std::vector<Pair>& pairs, std::size_t begin, std::size_t end) {
    Signature signature;
    std::int64_t calls = -1;
    bool even = true;
    const auto note = [&](const Listing& listing, int slot, std::vector<std::string_view>& names) {
      if (slot < 0) return;
      const Mark& mark = listing.marks[static_cast<std::size_t>(slot)];
      names.push_back(mark.name);
      even &= mark.calls > 0 && (calls < 0 || calls == mark.calls);
      calls = mark.calls;
    };
    for (std::size_t p = begin; p < end; ++p) {
      note(before_, pairs[p].before, signature.first);
      note(after_, pairs[p].after, signature.second);
    }
    const auto counts = even ? std::pair(signature.first.size(), signature.second.size())
                             : std::pair<std::size_t, std::size_t>();
    const auto [entry, is_new] = known_.try_emplace(std::move(signature), counts_.size());
    if (is_new) counts_.push_back(counts);
    for (std::size_t p = begin; p < end; ++p)
      of_pair_[p] = static_cast<std::int64_t>(entry->second);
  }

  const Listing &before_, &after_;
  std::vector<std::int64_t> of_pair_;
  std::map<Signature, std::size_t> known_;
  std::vector<std::pair<std::size_t, std::size_t>> counts_;
};

Key key_of(const Listing& before, const Listing& after, const Pair& pair, std::int64_t region) {
  Key key{{}, {}, {}, {}, region};
  if (pair.before >= 0) {
    const Mark& mark = before.marks[static_cast<std::size_t>(pair.before)];
    std::get<0>(key) = mark.name;
    std::get<1>(key) = mark.grid;
  }
  if (pair.after >= 0) {
    const Mark& mark = after.marks[static_cast<std::size_t>(pair.after)];
    std::get<2>(key) = mark.name;
    std::get<3>(key) = mark.grid;
  }
  return key;
}

void enter(const Listing& listing, int slot, Sum& sum, std::vector<run::GroupId>& groups,
           std::vector<std::size_t>& kernels) {
  if (slot < 0) return;
  const auto s = static_cast<std::size_t>(slot);
  sum.add(listing.pattern.slots[s], s);
  add_once(groups, listing.pattern.slots[s].group);
  add_once(kernels, listing.figures[s]);
}

Row row_of(const Listing& before, const Listing& after, Draft&& draft, std::int64_t region) {
  Row row;
  row.region = region;
  KernelChange& shown = row.shown;
  if (draft.before.calls > 0) shown.before = side_of(before, draft.before);
  if (draft.after.calls > 0) shown.after = side_of(after, draft.after);
  const Listing& listing = shown.after ? after : before;
  const Sum& sum = shown.after ? draft.after : draft.before;
  shown.role = listing.pattern.slots[sum.shown].role;
  shown.place =
      place_of(listing.input.run, (shown.after ? *shown.after : *shown.before).calls_per_step);
  shown.change = change_of(shown);
  row.exposed_before = per_step(draft.before.exposed, before.input.evidence.steps.used);
  row.exposed_after = per_step(draft.after.exposed, after.input.evidence.steps.used);
  row.before = std::move(draft.before_groups);
  row.after = std::move(draft.after_groups);
  row.before_kernels = std::move(draft.before_kernels);
  row.after_kernels = std::move(draft.after_kernels);
  return row;
}

// Pairs that make one row: a pair, and what is left over of its name elsewhere in the step, which is
// more calls of it and no new kernel. The first pair names the row.
using Cluster = std::vector<std::size_t>;

std::vector<Cluster> find_clusters(const Listing& before, const Listing& after,
                                   const std::vector<Pair>& pairs, const Regions& regions) {
  const auto slot = [&](const Listing& listing, int index) -> const Slot& {
    return listing.pattern.slots[static_cast<std::size_t>(index)];
  };
  std::vector<Cluster> clusters;
  std::map<std::string_view, std::pair<Nanos, std::size_t>> largest;  // of a name: time, cluster
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (!pairs[p].anchor) continue;
    const Nanos time = slot(before, pairs[p].before).time + slot(after, pairs[p].after).time;
    const std::string_view name = before.marks[static_cast<std::size_t>(pairs[p].before)].name;
    const auto [entry, is_new] = largest.try_emplace(name, time, clusters.size());
    if (!is_new && time > entry->second.first) entry->second = {time, clusters.size()};
    clusters.push_back({p});
  }
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (pairs[p].anchor) continue;
    const bool alone = pairs[p].before < 0 || pairs[p].after < 0;
    const std::string_view name =
        pairs[p].before < 0 ? after.marks[static_cast<std::size_t>(pairs[p].after)].name
                            : before.marks[static_cast<std::size_t>(pairs[p].before)].name;
    const auto kept = largest.find(name);
    if (alone && kept != largest.end() && !regions.is_fusion(regions.of(p)))
      clusters[kept->second.second].push_back(p);
    else
      clusters.push_back({p});
  }
  return clusters;
}

// Swapped sides give the same order: names of a row are compared as a set.
bool precedes(const Row& a, const Row& b) {
  const Nanos delta_a = std::abs(a.delta()), delta_b = std::abs(b.delta());
  if (delta_a != delta_b) return delta_a > delta_b;
  const auto names = [](const Row& row) {
    const auto text = [](const std::optional<KernelSide>& side) {
      return side ? side->name + fmt::format(" {}", fmt::join(side->grid, ",")) : std::string();
    };
    std::pair both{text(row.shown.before), text(row.shown.after)};
    if (both.second < both.first) std::swap(both.first, both.second);
    return both;
  };
  const auto time = [](const Row& row) {
    return (row.shown.before ? row.shown.before->ns_per_step : 0) +
           (row.shown.after ? row.shown.after->ns_per_step : 0);
  };
  if (time(a) != time(b)) return time(a) > time(b);
  return names(a) < names(b);
}

}  // namespace

Rows find_rows(const Input& before_input, const Input& after_input) {
  const Listing before(before_input), after(after_input);
  const std::vector<Pair> pairs =
      align(before.marks, before.pattern.in_order, after.marks, after.pattern.in_order);
  const Regions regions(before, after, pairs);
  // Places of one kernel that changed alike are one row; a place that changed by itself is its own.
  std::map<std::pair<Key, Change>, Draft> drafts;
  for (const Cluster& cluster : find_clusters(before, after, pairs, regions)) {
    const auto add = [&](Draft& draft) {
      for (const std::size_t p : cluster) {
        enter(before, pairs[p].before, draft.before, draft.before_groups, draft.before_kernels);
        enter(after, pairs[p].after, draft.after, draft.after_groups, draft.after_kernels);
      }
    };
    Draft alone;
    add(alone);
    const std::int64_t region = regions.of(cluster.front());
    const Change change = row_of(before, after, std::move(alone), region).shown.change;
    add(drafts[{key_of(before, after, pairs[cluster.front()], region), change}]);
  }
  Rows result;
  for (auto& [key, draft] : drafts)
    result.rows.push_back(row_of(before, after, std::move(draft), std::get<4>(key.first)));
  std::stable_sort(result.rows.begin(), result.rows.end(), precedes);
  result.regions.resize(regions.size());
  for (std::size_t r = 0; r < result.regions.size(); ++r)
    std::tie(result.regions[r].kernels_before, result.regions[r].kernels_after) = regions.counts(r);
  for (std::size_t r = 0; r < result.rows.size(); ++r) {
    const std::int64_t region = result.rows[r].region;
    if (region >= 0) result.regions[static_cast<std::size_t>(region)].rows.push_back(r);
  }
  return result;
}

}  // namespace culprit::compare
