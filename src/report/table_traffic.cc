// What moves data: the collectives of a step, and its copies, sets and allocations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "report/table.h"
#include "report/views.h"

namespace culprit::report {
namespace {

using enum CellKind;

struct Sum {
  Nanos ns = 0, fastest = std::numeric_limits<Nanos>::max();
  double exposed = 0;
  std::int64_t calls = 0;
  void add(Nanos duration, double share_exposed) {
    ns += duration;
    exposed += share_exposed * static_cast<double>(duration);
    fastest = std::min(fastest, duration);
    ++calls;
  }
  Nanos average() const { return (ns + calls / 2) / calls; }
  Nanos above_fastest() const { return ns - fastest * calls; }
};

template <class Visit>
void for_each_used(const run::Run& run, Visit&& visit) {
  for (const run::Step& step : run.steps) {
    for (std::int64_t i = step.first; step.used && i < step.last; ++i)
      visit(run.activities[static_cast<std::size_t>(i)]);
  }
}

// By group: the share of its time in which nothing else ran.
std::vector<double> exposed_shares(const Answer& answer) {
  std::vector<double> shares(answer.run->groups.size(), 0);
  for (const evidence::KernelFigures& kernel : answer.evidence->kernels) {
    if (kernel.ns_per_step <= 0) continue;
    shares[kernel.group.index] =
        static_cast<double>(kernel.exposed_ns_per_step) / static_cast<double>(kernel.ns_per_step);
  }
  return shares;
}

struct PerStep {
  std::int64_t steps = 1;
  Nanos operator()(Nanos total) const { return (total + steps / 2) / steps; }
  double calls(std::int64_t total) const {
    return static_cast<double>(total) / static_cast<double>(steps);
  }
};

PerStep per_step(const Answer& answer) {
  return {std::max<std::int64_t>(1, answer.evidence->steps.used)};
}

template <class Key>
std::vector<std::pair<Key, Sum>> by_time(const std::map<Key, Sum>& sums) {
  std::vector<std::pair<Key, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  return rows;
}

// As NCCL's metadata writes it: "BFloat16", "c10::BFloat16", "int8".
known::Dtype dtype_of(std::string_view text) {
  const known::Dtype torch = known::dtype_from_torch(text);
  return torch != known::Dtype::kUnknown ? torch : known::dtype_from_config(text);
}

Cell known_cell(std::int64_t value) { return value > 0 ? Cell(value) : Cell(); }
Cell words_cell(std::string_view words) {
  return words.empty() ? Cell() : Cell(std::string(words));
}

std::string kernel_name(const run::Run& run, const run::Group& group) {
  return group.info.short_name.empty() ? std::string(text_of(run, group.name))
                                       : group.info.short_name;
}

double gbps(std::int64_t bytes, Nanos ns) {
  return ns > 0 ? static_cast<double>(bytes) / static_cast<double>(ns) : 0;
}

Cell speed_cell(std::int64_t bytes, Nanos ns) {
  return bytes > 0 && ns > 0 ? Cell(gbps(bytes, ns)) : Cell();
}

}  // namespace

Grid comm_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"per step", "ns_per_step", kTime, true},
                  {"exposed", "exposed_ns_per_step", kTime, true},
                  {"above fastest", "above_fastest_ns_per_step", kTime, true, 70},
                  {"calls", "calls_per_step", kNumber, true},
                  {"each", "avg_ns", kTime, false, 60},
                  {"fastest", "min_ns", kTime, false, 100},
                  {"bytes", "bytes", kCount, false, 90},
                  {"GB/s", "gbps", kNumber, false, 110},
                  {"ranks", "group_size", kCount, false, 100},
                  {"type", "dtype", kText, false, 120},
                  {"collective", "collective", kText, false, 80},
                  {"kernel", "kernel"}};
  grid.label_column = 11;
  // Collective, type, bytes, ranks, kernel.
  using Key = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::string>;
  const std::vector<double> exposed = exposed_shares(answer);
  std::map<Key, Sum> sums;
  for_each_used(run, [&](const run::Activity& activity) {
    if (!known::is_comm(activity.kind)) return;
    const run::Group& group = run.groups[activity.group.index];
    Key key{{}, {}, 0, 0, kernel_name(run, group)};
    if (const std::uint32_t entry = run.trace->device.collective[activity.row.index]; entry > 0) {
      const store::Collective& collective = run.trace->collectives[entry - 1];
      const std::int64_t elements = std::max(collective.in_elements, collective.out_elements);
      const std::string_view type = text_of(run, collective.dtype);
      const std::int64_t bits = known::bits(dtype_of(type));
      std::get<0>(key) = text_of(run, collective.name);
      std::get<1>(key) = type;
      const bool sized =
          elements > 0 && bits > 0 && elements < std::numeric_limits<std::int64_t>::max() / bits;
      std::get<2>(key) = sized ? elements * bits / 8 : 0;
      std::get<3>(key) = std::max<std::int64_t>(0, collective.group_size);
    }
    sums[key].add(activity.end - activity.begin, exposed[activity.group.index]);
  });
  const PerStep mean = per_step(answer);
  for (const auto& [key, sum] : by_time(sums)) {
    const auto& [collective, type, bytes, ranks, kernel] = key;
    grid.rows.push_back({mean(sum.ns), mean(static_cast<Nanos>(sum.exposed)),
                         mean(sum.above_fastest()), mean.calls(sum.calls), sum.average(),
                         sum.fastest, known_cell(bytes), speed_cell(bytes, sum.average()),
                         known_cell(ranks), words_cell(type), words_cell(collective), kernel});
  }
  if (grid.rows.empty()) grid.caption = "No communication kernel runs in the steps that count.";
  grid.rest_label = "more: --all";
  grid.total_label = "all collectives";
  return grid;
}

namespace {

constexpr std::string_view kAllocating[] = {
    "Malloc",    "Free",   "HostAlloc",         "HostRegister",
    "MemCreate", "MemMap", "MemAddressReserve", "MemRelease",
    "MemUnmap"};

bool allocates(std::string_view call) {
  return std::any_of(std::begin(kAllocating), std::end(kAllocating), [call](std::string_view part) {
    return call.find(part) != std::string_view::npos;
  });
}

std::string_view what_of(store::DeviceKind kind) {
  return kind == store::DeviceKind::kMemset ? "set" : "copy";
}

// Calls that allocate or free, between the begin of the first and the end of the last used step.
std::map<std::string, Sum> allocations(const run::Run& run) {
  std::map<std::string, Sum> sums;
  const store::CallTable& calls = run.trace->calls;
  Nanos begin = std::numeric_limits<Nanos>::max(), end = std::numeric_limits<Nanos>::min();
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    begin = std::min(begin, step.begin);
    end = std::max(end, step.end);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls.begin[i] < begin || calls.begin[i] >= end) continue;
    const std::string_view name = text_of(run, calls.name[i]);
    if (allocates(name)) sums[std::string(name)].add(std::max<Nanos>(0, calls.dur[i]), 0);
  }
  return sums;
}

}  // namespace

Grid memory_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {
      {"per step", "ns_per_step", kTime, true}, {"exposed", "exposed_ns_per_step", kTime, true, 75},
      {"calls", "calls_per_step", kNumber},     {"each", "avg_ns", kTime, false, 60},
      {"bytes", "bytes", kCount, false, 70},    {"GB/s", "gbps", kNumber, false, 90},
      {"what", "what", kText, false, 110},      {"name", "name"}};
  grid.label_column = 7;
  using Key = std::tuple<std::string, store::DeviceKind, std::int64_t>;
  const std::vector<double> exposed = exposed_shares(answer);
  std::map<Key, Sum> sums;
  for_each_used(run, [&](const run::Activity& activity) {
    const run::Group& group = run.groups[activity.group.index];
    const bool moves = group.device_kind == store::DeviceKind::kMemcpy ||
                       group.device_kind == store::DeviceKind::kMemset;
    if (!moves) return;
    const std::int64_t bytes =
        std::max<std::int64_t>(0, run.trace->device.bytes[activity.row.index]);
    sums[{std::string(text_of(run, group.name)), group.device_kind, bytes}].add(
        activity.end - activity.begin, exposed[activity.group.index]);
  });
  const PerStep mean = per_step(answer);
  for (const auto& [key, sum] : by_time(sums)) {
    const auto& [name, kind, bytes] = key;
    grid.rows.push_back({mean(sum.ns), mean(static_cast<Nanos>(sum.exposed)), mean.calls(sum.calls),
                         sum.average(), known_cell(bytes), speed_cell(bytes, sum.average()),
                         std::string(what_of(kind)), name});
  }
  for (const auto& [name, sum] : by_time(allocations(run))) {
    grid.rows.push_back({Cell(), Cell(), mean.calls(sum.calls), sum.average(), Cell(), Cell(),
                         std::string("host call"), name});
  }
  if (grid.rows.empty()) grid.caption = "No copy, set or allocation is in the steps that count.";
  grid.rest_label = "more: --all";
  grid.total_label = "all copies and sets";
  return grid;
}

}  // namespace culprit::report
