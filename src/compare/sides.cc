#include "compare/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace culprit::compare {
namespace {

using run::StepKind;

using Batches = std::map<std::int64_t, std::int64_t>;  // batch: steps that count

Batches batches_of(const run::Run& run, StepKind kind) {
  Batches batches;
  for (const run::Step& step : run.steps) {
    if (step.kind != kind || !step.batch) continue;
    if (step.used || step.why_excluded == "other-kind") ++batches[*step.batch];
  }
  return batches;
}

std::map<StepKind, std::int64_t> kinds_of(const run::Run& run) {
  std::map<StepKind, std::int64_t> kinds;
  for (const run::Step& step : run.steps) ++kinds[step.kind];
  return kinds;
}

// The batch with most steps on the side that has fewer of it; none where no batch has enough.
std::optional<std::int64_t> common_batch(const Batches& before, const Batches& after) {
  constexpr std::int64_t kEnough = 3;
  std::optional<std::int64_t> best;
  std::int64_t most = 0;
  for (const auto& [batch, count] : before) {
    const auto other = after.find(batch);
    if (other == after.end()) continue;
    const std::int64_t fewer = std::min(count, other->second);
    const bool all = before.size() == 1 || after.size() == 1;
    if ((fewer < kEnough && !all) || fewer <= most) continue;
    best = batch;
    most = fewer;
  }
  return best;
}

void count_launches(const run::Run& run, Side& side) {
  std::int64_t kernels = 0, replayed = 0, steps = 0;
  std::set<std::uint32_t> calls;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    ++steps;
    for (std::int64_t i = step.first; i < step.last; ++i) {
      const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
      ++kernels;
      replayed += activity.in_graph ? 1 : 0;
      if (activity.call.valid()) calls.insert(activity.call.index);
    }
  }
  if (steps == 0 || kernels == 0) return;
  side.kernels_per_step = static_cast<double>(kernels) / static_cast<double>(steps);
  side.replayed = static_cast<double>(replayed) / static_cast<double>(kernels);
  if (!calls.empty())
    side.launches_per_step = static_cast<double>(calls.size()) / static_cast<double>(steps);
}

Nanos communication_of(const run::Run& run, const run::Step& step) {
  Nanos sum = 0;
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const run::Activity& activity = run.activities[static_cast<std::size_t>(i)];
    if (known::is_comm(activity.kind)) sum += activity.end - activity.begin;
  }
  return sum;
}

void find_stalls(const Input& input, Side& side) {
  const run::Run& run = input.run;
  Nanos usual_comm = 0;
  std::int64_t used = 0;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    ++used;
    usual_comm += communication_of(run, step);
  }
  if (used > 0) usual_comm /= used;
  std::int64_t index = 0;
  Nanos excess = 0;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    const run::Step& step = run.steps[s];
    if (step.kind != run.kind) continue;
    if (!step.used) side.excluded.emplace_back(index, step.why_excluded);
    for (const evidence::Outlier& outlier : input.evidence.outliers) {
      if (static_cast<std::size_t>(outlier.step) != s) continue;
      const bool waited = communication_of(run, step) - usual_comm > outlier.excess / 2;
      side.stalls.push_back({index, step.length(), outlier.excess, outlier.cause, waited});
      excess += outlier.excess;
    }
    ++index;
  }
  const auto steps = used + static_cast<std::int64_t>(side.stalls.size());
  if (steps > 0) side.stalled_per_step = (excess + steps / 2) / steps;
}

std::optional<std::int64_t> batch_of(const run::Run& run) {
  std::optional<std::int64_t> batch;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    if (!step.batch || (batch && *batch != *step.batch)) return std::nullopt;
    batch = step.batch;
  }
  return batch;
}

std::string batches_text(const Side& side) {
  if (side.batch) return fmt::format("batch {}", *side.batch);
  return "several batches";
}

}  // namespace

Matching match_steps(const run::Run& before, const run::Run& after) {
  Matching matching;
  const auto kinds_before = kinds_of(before), kinds_after = kinds_of(after);
  StepKind kind = before.kind;
  if (before.kind != after.kind) {
    if (kinds_after.contains(before.kind))
      kind = before.kind;
    else if (kinds_before.contains(after.kind))
      kind = after.kind;
    else {
      matching.why_not =
          fmt::format("no kind of step in common: {} before, {} after",
                      run::step_kind_name(before.kind), run::step_kind_name(after.kind));
      return matching;
    }
    matching.kind = kind;
  }
  matching.batch = common_batch(batches_of(before, kind), batches_of(after, kind));
  return matching;
}

std::vector<Nanos> lengths_of(const run::Run& run) {
  std::vector<Nanos> lengths;
  for (const run::Step& step : run.steps)
    if (step.used) lengths.push_back(step.length());
  return lengths;
}

Side describe(const Input& input) {
  const run::Run& run = input.run;
  const store::TraceInfo& info = run.trace->info;
  Side side;
  side.path = input.path;
  side.format = info.format;
  side.file_bytes = info.file_bytes;
  side.events = info.events;
  side.rank = info.rank;
  side.device = !run.properties.name.empty() ? run.properties.name
                : run.gpu                    ? run.gpu->gpu.name
                                             : std::string();
  side.layers = run.layers.count;
  side.kind = run.kind;
  side.how = run.how;
  side.batch = batch_of(run);
  side.steps = input.evidence.steps;
  side.notes = run.trace->notes;
  side.notes.merge(run.notes);
  count_launches(run, side);
  find_stalls(input, side);
  return side;
}

std::vector<BudgetDelta> budget_deltas(const evidence::Evidence& before,
                                       const evidence::Evidence& after) {
  std::map<known::Owner, BudgetDelta> rows;
  for (const evidence::BudgetRow& row : before.budget) {
    BudgetDelta& delta = rows[row.owner];
    delta.before = row.ns_per_step;
    delta.calls_before = row.calls_per_step;
  }
  for (const evidence::BudgetRow& row : after.budget) {
    BudgetDelta& delta = rows[row.owner];
    delta.after = row.ns_per_step;
    delta.calls_after = row.calls_per_step;
  }
  std::vector<BudgetDelta> out;
  for (auto& [owner, row] : rows) {
    row.owner = owner;
    out.push_back(row);
  }
  std::stable_sort(out.begin(), out.end(), [](const BudgetDelta& a, const BudgetDelta& b) {
    const Nanos delta_a = std::abs(a.delta()), delta_b = std::abs(b.delta());
    return delta_a != delta_b ? delta_a > delta_b : a.before + a.after > b.before + b.after;
  });
  return out;
}

void note_differences(const Side& before, const Side& after, store::Notes& notes) {
  using store::Severity;
  const bool marked = before.batch || after.batch;
  if (marked && before.batch != after.batch) {
    notes.add({"batches-differ",
               Severity::kWarning,
               1,
               {},
               {},
               "",
               fmt::format("{} before, {} after: steps are compared as they are, and part of the "
                           "difference is the load",
                           batches_text(before), batches_text(after))});
  }
  if (!before.device.empty() && !after.device.empty() && before.device != after.device) {
    notes.add({"devices-differ",
               Severity::kWarning,
               1,
               {},
               {},
               "",
               fmt::format("recorded on {} before, on {} after", before.device, after.device)});
  }
  if (before.layers && after.layers && *before.layers != *after.layers) {
    notes.add(
        {"layers-differ",
         Severity::kInfo,
         1,
         {},
         {},
         "",
         fmt::format("{} layers before, {} after, as told by the calls: perhaps not one model",
                     *before.layers, *after.layers)});
  }
}

}  // namespace culprit::compare
