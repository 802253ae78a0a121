#include "report/compare_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::report {
namespace {

using compare::Cause;
using compare::Comparison;
using compare::KernelChange;
using compare::Outcome;
using compare::Side;

std::string arrow(std::string before, std::string after) {
  if (before == after) return after;
  return std::move(before) + " → " + std::move(after);
}

template <class Text>
std::string both(const KernelChange& kernel, Text&& text) {
  return arrow(kernel.before ? text(*kernel.before) : std::string("-"),
               kernel.after ? text(*kernel.after) : std::string("-"));
}

// "14.2 → 11.6 µs": one unit where both have it.
std::string each_text(const KernelChange& kernel) {
  std::string text = both(
      kernel, [](const compare::KernelSide& side) { return text::duration(side.avg_ns, true); });
  const std::size_t middle = text.find(" → ");
  if (middle == std::string::npos) return text;
  const std::size_t unit = text.rfind(' '), first = text.rfind(' ', middle - 1);
  const bool same =
      first != std::string::npos && text.substr(first, middle - first) == text.substr(unit);
  return same ? text.substr(0, first) + text.substr(middle) : text;
}

std::string grid_text(const compare::KernelSide& side) {
  if (side.grid == store::Dim3{}) return "-";
  if (side.grid[1] == 1 && side.grid[2] == 1) return text::count(side.grid[0]);
  return fmt::format("{}x{}x{}", side.grid[0], side.grid[1], side.grid[2]);
}

// What the first causes explain, with the way the step went; empty: none does.
std::string because(const Comparison& c) {
  const Cause* cause = nullptr;
  for (const Cause& each : c.causes) {
    if (each.beside_steps || (each.exposed > 0) != (c.delta > 0)) continue;
    cause = &each;
    break;
  }
  if (cause == nullptr) return "no single cause was found; the tables say where it went";
  const double part = static_cast<double>(cause->exposed) / static_cast<double>(c.delta);
  const std::string share = part > 1.005   ? std::string()
                            : part > 0.995 ? std::string(", all of it")
                                           : fmt::format(" of it ({})", text::percent(part));
  return fmt::format("{} accounts for {}{}", cause->id,
                     text::duration(std::abs(cause->exposed), true), share);
}

std::string other_device(const Comparison& c) {
  const bool other =
      !c.before.device.empty() && !c.after.device.empty() && c.before.device != c.after.device;
  return other ? fmt::format("; on another device: {} → {}", c.before.device, c.after.device)
               : std::string();
}

std::string beside(const Comparison& c) {
  for (const Cause& cause : c.causes)
    if (cause.beside_steps)
      return fmt::format("; beside them {}: {} a step", cause.id, signed_duration(cause.exposed));
  return {};
}

}  // namespace

std::string signed_duration(Nanos ns) {
  return fmt::format("{}{}", ns > 0 ? "+" : ns < 0 ? "-" : "", text::duration(std::abs(ns), true));
}

std::string signed_percent(double share) {
  return fmt::format("{}{}",
                     share > 0   ? "+"
                     : share < 0 ? "-"
                                 : "",
                     text::percent(std::fabs(share)));
}

std::string noise_text(const Comparison& c) {
  if (!c.p_value) return "too few steps to judge noise";
  const std::string p =
      *c.p_value < 0.0001 ? std::string("p<0.0001") : fmt::format("p={}", text::number(*c.p_value));
  return fmt::format("± {}, {}", text::duration(c.noise.value_or(0), true), p);
}

std::string comparison_headline(const Comparison& c) {
  if (c.outcome == Outcome::kNotComparable) return "not comparable: " + c.why_not;
  const std::string steps =
      arrow(text::duration(c.before.steps.mean, true), text::duration(c.after.steps.mean, true));
  if (c.outcome == Outcome::kNoDifference) {
    const std::string how = c.delta == 0
                                ? std::string("no difference")
                                : fmt::format("no significant difference: {}, {}",
                                              signed_duration(c.delta), signed_percent(c.share));
    return fmt::format("{} a step: {} ({}){}", steps, how, noise_text(c), beside(c));
  }
  return fmt::format("{} a step: {} {} ({}), {} ({}); {}{}", steps,
                     text::duration(std::abs(c.delta), true), compare::outcome_name(c.outcome),
                     signed_percent(c.share), c.significant ? "beyond noise" : "noise unknown",
                     noise_text(c), because(c), other_device(c) + beside(c));
}

std::string side_text(const Side& side) {
  const evidence::StepStats& steps = side.steps;
  const bool unknown = side.kind == run::StepKind::kUnknown;
  std::string out =
      fmt::format("{} {}step{}", text::count(steps.used),
                  unknown ? std::string() : std::string(run::step_kind_name(side.kind)) + " ",
                  steps.used == 1 ? "" : "s");
  std::string which;
  if (steps.used != steps.found) which = fmt::format("of {}", text::count(steps.found));
  if (side.batch) which += fmt::format("{}batch {}", which.empty() ? "" : ", ", *side.batch);
  if (!which.empty()) out += " (" + which + ")";
  out += fmt::format(": {}", text::duration(steps.mean, true));
  if (steps.used > 1) out += fmt::format(" mean, {} p99", text::duration(steps.p99, true));
  if (steps.mean > 0)
    out += fmt::format("; busy {}", text::percent(static_cast<double>(steps.busy_ns) /
                                                  static_cast<double>(steps.mean)));
  if (!side.stalls.empty()) out += fmt::format("; {} stalls left out", side.stalls.size());
  return out;
}

std::string kernel_text(const KernelChange& kernel) {
  const bool other = kernel.before && kernel.after && kernel.before->name != kernel.after->name;
  if (other && kernel.before->short_name == kernel.after->short_name)
    return kernel.after->short_name + " (another variant)";  // other template arguments
  if (other) return arrow(kernel.before->short_name, kernel.after->short_name);
  return kernel.after ? kernel.after->short_name : kernel.before->short_name;
}

std::string cause_head(const Cause& cause, std::size_t index) {
  const std::string what = cause.exposed == cause.ns
                               ? std::string()
                               : fmt::format(" ({} of kernel time)", signed_duration(cause.ns));
  return fmt::format("{}  {}: {}, {}; {} a step{}{}", index + 1, cause.id,
                     verdict::standing_name(cause.standing),
                     verdict::confidence_name(cause.confidence), signed_duration(cause.exposed),
                     what, cause.beside_steps ? ", beside the steps that count" : "");
}

std::vector<store::Note> notes_of(const Comparison& c) {
  std::vector<store::Note> notes = c.notes.all();
  for (const auto& [side, word] : {std::pair(&c.before, "before"), std::pair(&c.after, "after")}) {
    for (store::Note note : side->notes.all()) {
      note.where = note.where.empty() ? word : fmt::format("{}: {}", word, note.where);
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

Grid budget_delta_grid(const Comparison& c) {
  Grid grid;
  grid.columns = {{"where a step goes", "owner"},
                  {"before", "before_ns", CellKind::kTime, true},
                  {"after", "after_ns", CellKind::kTime, true},
                  {"difference", "delta_ns", CellKind::kDelta, true},
                  {"calls", "", CellKind::kText, false, 70}};
  for (const compare::BudgetDelta& row : c.budget) {
    const bool calls = row.calls_before > 0 || row.calls_after > 0;
    grid.rows.push_back(
        {std::string(known::owner_name(row.owner)), row.before, row.after, row.delta(),
         calls ? Cell(arrow(text::amount(row.calls_before), text::amount(row.calls_after)))
               : Cell()});
  }
  grid.rest_label = "other owners";
  grid.total_label = "total = step";
  return grid;
}

Grid kernel_delta_grid(const Comparison& c, bool all) {
  Grid grid;
  grid.columns = {{"difference", "delta_ns", CellKind::kDelta, true},
                  {"change", "change"},
                  {"calls", "", CellKind::kText},
                  {"each", "", CellKind::kText, false, 60},
                  {"grid", "", CellKind::kText, false, 110},
                  {"role", "role", CellKind::kText, false, 100},
                  {"kernel", "kernel"}};
  grid.label_column = 6;
  for (const KernelChange& kernel : c.kernels) {
    if (!all && kernel.change == compare::Change::kSame) continue;
    grid.rows.push_back(
        {kernel.delta(), std::string(compare::change_name(kernel.change)),
         both(kernel,
              [](const compare::KernelSide& side) { return text::amount(side.calls_per_step); }),
         each_text(kernel), both(kernel, grid_text), std::string(known::owner_name(kernel.role)),
         kernel_text(kernel)});
  }
  grid.rest_label = "more: --all";
  return grid;
}

Grid rank_delta_grid(const compare::Comparisons& pairs) {
  Grid grid;
  grid.columns = {{"rank", "name"},
                  {"before", "before_ns", CellKind::kTime},
                  {"after", "after_ns", CellKind::kTime},
                  {"difference", "delta_ns", CellKind::kDelta},
                  {"of it comm", "comm_delta_ns", CellKind::kDelta, false, 76},
                  {"verdict", "verdict", CellKind::kText, false, 60},
                  {"largest cause", "cause", CellKind::kText, false, 70}};
  for (const compare::Ranked& rank : pairs.all) {
    const Comparison& c = rank.comparison;
    const bool usable = c.outcome != Outcome::kNotComparable;
    grid.rows.push_back(
        {rank.name, usable ? Cell(c.before.steps.mean) : Cell(),
         usable ? Cell(c.after.steps.mean) : Cell(), usable ? Cell(c.delta) : Cell(),
         usable ? Cell(compare::communication_delta(c)) : Cell(),
         std::string(compare::outcome_name(c.outcome)),
         c.causes.empty()
             ? std::string("-")
             : fmt::format("{} {}", c.causes[0].id, signed_duration(c.causes[0].exposed))});
  }
  grid.rest_label = "more ranks: --all";
  return grid;
}

bool gate_fails(const compare::Comparisons& pairs, std::optional<double> gate) {
  if (!gate) return false;
  return std::any_of(pairs.all.begin(), pairs.all.end(), [&](const compare::Ranked& rank) {
    return rank.comparison.outcome == Outcome::kSlower && rank.comparison.share > *gate;
  });
}

}  // namespace culprit::report
