// The budget: segments of the timeline and gaps, summed per owner over the used steps, then divided
// so that the rows still add up.
#include <algorithm>
#include <array>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using Totals = std::array<Nanos, known::kOwnerCount>;

Totals owned_time(const Basis& basis, const std::vector<Gap>& gaps) {
  Totals totals{};
  for (const run::Step& step : basis.run.steps) {
    if (!step.used) continue;
    for (std::size_t i = segment_at(basis.segments, step.begin);
         i < basis.segments.size() && basis.segments[i].begin < step.end; ++i) {
      const Segment& segment = basis.segments[i];
      if (segment.idle()) continue;
      const auto kind = static_cast<std::size_t>(basis.run.activities[segment.owner.index].kind);
      totals[kind] += std::min(segment.end, step.end) - std::max(segment.begin, step.begin);
    }
  }
  for (const Gap& gap : gaps) totals[static_cast<std::size_t>(gap.owner)] += gap.end - gap.begin;
  return totals;
}

// Each total divided by `steps`, rounded down; then one more for the largest remainders until the
// sum is `mean`, which is their exact sum divided by `steps` and rounded.
Totals divide(const Totals& totals, std::int64_t steps, Nanos mean) {
  Totals rows{};
  std::array<std::size_t, known::kOwnerCount> order{};
  Nanos missing = mean;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    order[i] = i;
    rows[i] = totals[i] / steps;
    missing -= rows[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return totals[a] % steps > totals[b] % steps;
  });
  for (std::size_t i = 0; missing > 0 && i < order.size(); ++i, --missing) ++rows[order[i]];
  return rows;
}

void sort_rows(std::vector<BudgetRow>& budget) {
  std::stable_sort(budget.begin(), budget.end(), [](const BudgetRow& a, const BudgetRow& b) {
    return a.ns_per_step > b.ns_per_step;
  });
}

}  // namespace

std::vector<BudgetRow> measure_budget(const Basis& basis, const std::vector<Gap>& gaps,
                                      Nanos mean) {
  std::vector<BudgetRow> budget;
  if (basis.steps == 0) return budget;
  const Totals rows = divide(owned_time(basis, gaps), basis.steps, mean);
  std::array<std::int64_t, known::kOwnerCount> calls{};
  for (const run::Step& step : basis.run.steps) {
    for (std::int64_t i = step.first; step.used && i < step.last; ++i) {
      ++calls[static_cast<std::size_t>(basis.run.activities[static_cast<std::size_t>(i)].kind)];
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0 && calls[i] == 0) continue;
    BudgetRow row;
    row.owner = static_cast<known::Owner>(i);
    row.ns_per_step = rows[i];
    row.share = mean > 0 ? static_cast<double>(rows[i]) / static_cast<double>(mean) : 0;
    row.calls_per_step = static_cast<double>(calls[i]) / static_cast<double>(basis.steps);
    budget.push_back(row);
  }
  sort_rows(budget);
  return budget;
}

void part_waiting(Nanos wait_ns_per_step, Nanos mean, std::vector<BudgetRow>& budget) {
  const auto comm = std::find_if(budget.begin(), budget.end(), [](const BudgetRow& row) {
    return row.owner == known::Owner::kComm;
  });
  if (comm == budget.end() || mean <= 0) return;
  BudgetRow wait;
  wait.owner = known::Owner::kCommWait;
  wait.ns_per_step = std::min(wait_ns_per_step, comm->ns_per_step);
  if (wait.ns_per_step <= 0) return;
  const auto share = [&](Nanos ns) { return static_cast<double>(ns) / static_cast<double>(mean); };
  comm->ns_per_step -= wait.ns_per_step;
  comm->share = share(comm->ns_per_step);
  wait.share = share(wait.ns_per_step);
  budget.push_back(wait);
  sort_rows(budget);
}

}  // namespace culprit::evidence
