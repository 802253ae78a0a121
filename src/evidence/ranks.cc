#include "evidence/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "base/text.h"

namespace culprit::evidence {
namespace {

// The first number of a label: 3 of "TP03-DP00".
std::optional<std::int64_t> number_of(std::string_view label) {
  const std::size_t at = label.find_first_of("0123456789");
  std::int64_t number = 0;
  if (at == std::string_view::npos) return std::nullopt;
  const auto read = std::from_chars(label.data() + at, label.data() + label.size(), number);
  return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

RankFigures named(const store::Trace& trace, const run::Device& device) {
  RankFigures rank;
  rank.label = trace.strings.or_empty(device.rank);
  if (rank.label.size() > 2) rank.label = rank.label.substr(1, rank.label.size() - 2);
  rank.process = trace.strings.or_empty(device.process);
  rank.device = device.id;
  return rank;
}

void fill_recording(const run::Run& run, RankFigures& rank) {
  std::vector<store::Span> spans;
  spans.reserve(run.activities.size());
  for (const run::Activity& activity : run.activities) {
    spans.push_back({activity.begin, activity.end});
    const run::Group& group = run.groups[activity.group.index];
    if (group.device_kind != store::DeviceKind::kKernel) continue;
    ++rank.kernels;
    if (__builtin_add_overflow(rank.kernel_ns, activity.end - activity.begin, &rank.kernel_ns))
      rank.kernel_ns = std::numeric_limits<Nanos>::max();
  }
  rank.busy_ns = store::total(store::union_of(std::move(spans)));
}

void fill_steps(const Evidence& evidence, RankFigures& rank) {
  rank.kind = evidence.run->kind;
  rank.how = evidence.run->how;
  rank.steps = evidence.steps;
  rank.budget = evidence.budget;
  rank.record = record_rank(evidence);
}

void sum_up_budget(RankFigures& rank) {
  rank.comm_ns_per_step = rank.wait_ns_per_step = rank.work_ns_per_step = 0;
  for (const BudgetRow& row : rank.budget) {
    if (row.owner == known::Owner::kComm)
      rank.comm_ns_per_step += row.ns_per_step;
    else if (row.owner == known::Owner::kCommWait)
      rank.wait_ns_per_step += row.ns_per_step;
    else if (!known::is_idle(row.owner))
      rank.work_ns_per_step += row.ns_per_step;
  }
}

// A device that only copies, or has no steps, may well be busy longer than a decode step lasts.
auto precedence(const RankFigures& rank) {
  return std::tuple{!rank.refused, rank.kernels > 0, rank.kind == run::StepKind::kDecode,
                    rank.how != run::StepsHow::kWholeTrace, rank.work_ns_per_step};
}

// Numbers name ranks only where each has one of its own.
void number_ranks(std::vector<RankFigures>& ranks) {
  for (RankFigures& rank : ranks)
    if (!rank.rank) rank.rank = number_of(rank.label);
  std::vector<std::int64_t> numbers;
  for (const RankFigures& rank : ranks)
    if (rank.rank) numbers.push_back(*rank.rank);
  std::sort(numbers.begin(), numbers.end());
  const bool apart = numbers.size() == ranks.size() &&
                     std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
  if (apart) return;
  for (RankFigures& rank : ranks) rank.rank.reset();
}

RankFigures figures_of(const store::Trace& trace, const run::Builder& builder,
                       const run::Options& wanted, std::size_t device, const Knowledge& known,
                       const std::function<void(Evidence&)>& look) {
  run::Options options = wanted;
  RankFigures rank;
  if (device < builder.devices().size()) rank = named(trace, builder.devices()[device]);
  rank.index = options.device = device;
  const Result<run::Run> run = builder.build(options);
  if (run.ok()) {
    fill_recording(*run, rank);
    Evidence evidence = measure(*run, known);
    fill_steps(evidence, rank);
    if (look) look(evidence);
  } else {
    rank.refused = run.error();
  }
  return rank;
}

std::size_t headline_of(const Ranks& ranks) {
  if (!ranks.skew.late.empty()) return ranks.skew.late.front();
  const auto longest =
      std::max_element(ranks.all.begin(), ranks.all.end(),
                       [](const auto& a, const auto& b) { return precedence(a) < precedence(b); });
  return static_cast<std::size_t>(longest - ranks.all.begin());
}

// Time of kernels that the other rank has by name as well, over that of all.
double shared_time(const RankRecord& record, const RankRecord& other) {
  Nanos all = 0, shared = 0;
  auto at = other.kernels.begin();
  for (const RankKernel& kernel : record.kernels) {
    all += kernel.ns;
    while (at != other.kernels.end() && at->name < kernel.name) ++at;
    if (at != other.kernels.end() && at->name == kernel.name) shared += kernel.ns;
  }
  return all > 0 ? static_cast<double>(shared) / static_cast<double>(all) : 1;
}

Error stranger(const std::string& name, std::string_view what, std::string hint) {
  return {Error::Code::kUsage, fmt::format("is no rank of the same run: {}", what), name,
          std::move(hint), ""};
}

}  // namespace

std::vector<RankFigures> measure_devices(const store::Trace& trace, const run::Builder& builder,
                                         const run::Options& options, const Knowledge& known) {
  std::vector<RankFigures> figures;
  const std::size_t devices = builder.devices().size();
  if (devices < 2) return figures;
  for (std::size_t d = 0; d < std::min(devices, run::kMostCompared); ++d)
    figures.push_back(figures_of(trace, builder, options, d, known, {}));
  return figures;
}

RankFigures measure_rank(const store::Trace& trace, const run::Builder& builder,
                         const run::Options& options, const Knowledge& known,
                         const std::function<void(Evidence&)>& look) {
  RankFigures rank = figures_of(trace, builder, options, 0, known, look);
  rank.rank = trace.info.rank;
  return rank;
}

Ranks compare_ranks(std::vector<RankFigures> figures, const Relate& relate) {
  Ranks ranks;
  if (figures.size() < 2) return ranks;
  ranks.all = std::move(figures);
  number_ranks(ranks.all);
  std::stable_sort(ranks.all.begin(), ranks.all.end(),
                   [](const RankFigures& a, const RankFigures& b) {
                     return std::tie(a.rank, a.label, a.device, a.process) <
                            std::tie(b.rank, b.label, b.device, b.process);
                   });
  std::vector<const RankRecord*> records;
  std::int64_t world = 0;
  for (const RankFigures& rank : ranks.all) {
    records.push_back(&rank.record);
    world = std::max(world, rank.record.world.value_or(0));
  }
  ranks.absent = std::max<std::int64_t>(0, world - static_cast<std::int64_t>(ranks.all.size()));
  ranks.skew = relate ? relate(ranks.all) : relate_ranks(records);
  for (std::size_t r = 0; r < ranks.all.size(); ++r) {
    RankFigures& rank = ranks.all[r];
    if (ranks.skew.known()) part_waiting(ranks.skew.ranks[r].wait, rank.steps.mean, rank.budget);
    sum_up_budget(rank);
  }
  ranks.headline = headline_of(ranks);
  return ranks;
}

Status check_same_run(const std::vector<RankFigures>& figures,
                      const std::vector<std::string>& names) {
  constexpr double kLeastShared = 0.3;               // of kernel time
  constexpr Nanos kFarthestClocks = 60'000'000'000;  // clocks of one cluster agree to a minute
  const RankFigures& first = figures.front();
  for (std::size_t i = 1; i < figures.size(); ++i) {
    const RankFigures& rank = figures[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (rank.rank && rank.rank == figures[j].rank)
        return stranger(names[i], fmt::format("it is rank {}, and so is {}", *rank.rank, names[j]),
                        "give each rank once; two runs are two commands");
    }
    const RankRecord &own = rank.record, &other = first.record;
    if (own.world && other.world && own.world != other.world)
      return stranger(names[i],
                      fmt::format("its world has {} ranks, that of {} has {}", *own.world,
                                  names.front(), *other.world),
                      "give traces of one run");
    if (rank.refused || first.refused) continue;
    const Nanos apart = std::max(own.begin, other.begin) - std::min(own.end, other.end);
    if (apart > kFarthestClocks)
      return stranger(names[i],
                      fmt::format("it was recorded {:.0f} s before or after {}",
                                  static_cast<double>(apart) / 1e9, names.front()),
                      "give traces of one recording");
    const double shared = std::min(shared_time(own, other), shared_time(other, own));
    if (shared < kLeastShared)
      return stranger(names[i],
                      fmt::format("{} of its kernel time is in kernels that {} has, too",
                                  text::percent(shared), names.front()),
                      "give traces of one model's run");
  }
  return Ok{};
}

std::string rank_name(const RankFigures& rank, const Ranks& ranks) {
  const auto alike =
      std::count_if(ranks.all.begin(), ranks.all.end(),
                    [&](const RankFigures& each) { return each.label == rank.label; });
  if (!rank.label.empty() && alike == 1) return rank.label;
  if (rank.label.empty() && rank.rank) return fmt::format("rank {}", *rank.rank);
  std::string name = fmt::format("device {}", rank.device);
  if (!rank.process.empty()) name += fmt::format(" of process {}", rank.process);
  return rank.label.empty() ? name : rank.label + " " + name;
}

}  // namespace culprit::evidence
