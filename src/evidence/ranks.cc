#include "evidence/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

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
  for (const BudgetRow& row : evidence.budget) {
    if (known::is_comm(row.owner))
      rank.comm_ns_per_step += row.ns_per_step;
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
  for (RankFigures& rank : ranks) rank.rank = number_of(rank.label);
  std::vector<std::int64_t> numbers;
  for (const RankFigures& rank : ranks)
    if (rank.rank) numbers.push_back(*rank.rank);
  std::sort(numbers.begin(), numbers.end());
  const bool apart = numbers.size() == ranks.size() &&
                     std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
  if (apart) return;
  for (RankFigures& rank : ranks) rank.rank.reset();
}

}  // namespace

Ranks measure_ranks(const store::Trace& trace, const run::Builder& builder, run::Options options,
                    const Knowledge& known) {
  Ranks ranks;
  const std::vector<run::Device>& devices = builder.devices();
  if (devices.size() < 2) return ranks;
  for (std::size_t d = 0; d < std::min(devices.size(), run::kMostCompared); ++d) {
    RankFigures rank = named(trace, devices[d]);
    rank.index = options.device = d;
    const Result<run::Run> run = builder.build(options);
    if (run.ok()) {
      fill_recording(*run, rank);
      fill_steps(measure(*run, known), rank);
    } else {
      rank.refused = run.error();
    }
    ranks.all.push_back(std::move(rank));
  }
  number_ranks(ranks.all);
  std::sort(ranks.all.begin(), ranks.all.end(), [](const RankFigures& a, const RankFigures& b) {
    return std::tie(a.rank, a.label, a.device, a.process) <
           std::tie(b.rank, b.label, b.device, b.process);
  });
  const auto longest =
      std::max_element(ranks.all.begin(), ranks.all.end(),
                       [](const auto& a, const auto& b) { return precedence(a) < precedence(b); });
  ranks.headline = static_cast<std::size_t>(longest - ranks.all.begin());
  return ranks;
}

std::string rank_name(const RankFigures& rank, const Ranks& ranks) {
  const auto alike =
      std::count_if(ranks.all.begin(), ranks.all.end(),
                    [&](const RankFigures& each) { return each.label == rank.label; });
  if (!rank.label.empty() && alike == 1) return rank.label;
  std::string name = fmt::format("device {}", rank.device);
  if (!rank.process.empty()) name += fmt::format(" of process {}", rank.process);
  return rank.label.empty() ? name : rank.label + " " + name;
}

}  // namespace culprit::evidence
