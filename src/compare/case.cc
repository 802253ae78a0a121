// What the judges of a difference share.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {

std::string shown_name(const KernelChange& kernel) {
  return kernel.after ? kernel.after->short_name : kernel.before->short_name;
}

std::string before_after(Nanos before, Nanos after) {
  const std::string a = text::duration(before, true), b = text::duration(after, true);
  return a == b ? a : fmt::format("{} → {}", a, b);
}

std::string counts_text(std::optional<double> before, std::optional<double> after) {
  const auto one = [](std::optional<double> n) {
    return n ? text::amount(*n) : std::string("unknown");
  };
  return one(before) == one(after) ? one(before) : fmt::format("{} → {}", one(before), one(after));
}

std::string times_text(double ratio) { return fmt::format("x {}", text::number(ratio)); }

std::string Case::load() const {
  const auto &a = comparison.before, &b = comparison.after;
  const auto one = [](const Side& side) {
    return side.batch                        ? side.batch
           : side.steps.tokens_how == "mark" ? side.steps.tokens
                                             : std::nullopt;
  };
  const auto load_a = one(a), load_b = one(b);
  if (!load_a || !load_b) return {};
  if (*load_a == *load_b) return fmt::format("{} on both sides", *load_a);
  return fmt::format("{} before, {} after", *load_a, *load_b);
}

const BudgetDelta* Case::budget(known::Owner owner) const {
  for (const BudgetDelta& row : comparison.budget)
    if (row.owner == owner) return &row;
  return nullptr;
}

Nanos Case::moved(known::Owner owner) const {
  const BudgetDelta* row = budget(owner);
  return row != nullptr ? row->delta() : 0;
}

double Case::mean_of_both() const {
  return (static_cast<double>(comparison.before.steps.mean) +
          static_cast<double>(comparison.after.steps.mean)) /
         2;
}

std::string Case::fact(std::string name, double value, std::string unit, std::string how,
                       std::string path) {
  for (const evidence::Fact& known : comparison.facts)
    if (known.name == name) return known.id;
  std::string id = fmt::format("F{}", comparison.facts.size() + 1);
  comparison.facts.push_back({id, std::move(name), value, std::move(unit), std::move(how),
                              fmt::format("culprit compare BEFORE AFTER --json | jq '.{}'", path)});
  return id;
}

Cause Case::cause_of(std::string id, std::span<const std::size_t> indices) {
  constexpr std::size_t kFactsAbout = 3;  // kernels
  Cause cause;
  cause.id = std::move(id);
  for (const std::size_t r : indices) {
    const Row& row = rows.rows[r];
    cause.ns += row.delta();
    cause.exposed += row.exposed();
    cause.kernels.push_back(r);
    for (const auto* side : {&row.shown.after, &row.shown.before}) {
      if (!*side || !(*side)->source) continue;
      const auto known = std::find(cause.where.begin(), cause.where.end(), *(*side)->source);
      if (known == cause.where.end()) cause.where.push_back(*(*side)->source);
    }
    if (cause.kernels.size() > kFactsAbout) continue;
    const auto say = [&](std::string_view field, double value, std::string_view unit,
                         std::string_view how) {
      const std::string path = fmt::format("kernels[{}].{}", r, field);
      cause.facts.push_back(fact(path, value, std::string(unit), std::string(how), path));
    };
    say("delta_ns", static_cast<double>(row.delta()), "ns",
        "sum of durations per step, after - before");
    if (row.shown.before)
      say("before.avg_ns", static_cast<double>(row.shown.before->avg_ns), "ns", "mean duration");
    if (row.shown.after)
      say("after.avg_ns", static_cast<double>(row.shown.after->avg_ns), "ns", "mean duration");
  }
  // Overlap can make the exposed part larger than the kernels' own difference; never claim more.
  if (std::abs(cause.exposed) > std::abs(cause.ns)) cause.exposed = cause.ns;
  return cause;
}

bool Case::enter(Cause cause) {
  if (std::max(std::abs(cause.ns), std::abs(cause.exposed)) < least) return false;
  for (const std::size_t r : cause.kernels) taken[r] = 1;
  comparison.causes.push_back(std::move(cause));
  return true;
}

std::vector<std::size_t> Case::free_rows(const std::function<bool(const Row&)>& fits) const {
  std::vector<std::size_t> found;
  for (std::size_t r = 0; r < rows.rows.size(); ++r)
    if (taken[r] == 0 && fits(rows.rows[r])) found.push_back(r);
  return found;
}

void Case::rule_out(std::string hypothesis, std::string claim, std::string because,
                    std::vector<std::string> facts) {
  comparison.ruled_out.push_back(
      {std::move(hypothesis), std::move(claim), std::move(because), std::move(facts)});
}

bool Case::found(std::string_view id) const {
  return std::any_of(comparison.causes.begin(), comparison.causes.end(),
                     [&](const Cause& cause) { return cause.id == id; });
}

}  // namespace culprit::compare
