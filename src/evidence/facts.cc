// The facts that every answer starts from, and the queries that give them again.
#include <fmt/format.h>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

void state_steps(Evidence& evidence) {
  const StepStats& steps = evidence.steps;
  const auto say = [&](std::string_view field, double value, std::string unit, std::string how) {
    evidence.add(fmt::format("steps.{}", field), value, std::move(unit), std::move(how),
                 sql_query(fmt::format("SELECT {} FROM summary", field)));
  };
  say("mean_ns", static_cast<double>(steps.mean), "ns",
      fmt::format("mean wall time of {} used steps", steps.used));
  say("median_ns", static_cast<double>(steps.median), "ns", "median of the same steps");
  say("busy_ns", static_cast<double>(steps.busy_ns), "ns",
      "time in which the device works, overlaps counted once, mean over the used steps");
  say("activity_ns", static_cast<double>(steps.activity_ns), "ns",
      "sum of the durations of kernels, copies and sets, mean over the used steps");
  say("device_busy", steps.device_busy, "1",
      "union of device activities over first to last activity of each step");
}

std::string how_owned(known::Owner owner) {
  if (owner == known::Owner::kGraph)
    return "time inside graph replays for which no kernel is recorded, mean over the used steps";
  return known::is_idle(owner)
             ? "idle device time with this cause, mean over the used steps"
             : "device time of this kind, overlaps counted once, mean over the used steps";
}

void state_budget(Evidence& evidence) {
  for (const BudgetRow& row : evidence.budget) {
    const std::string_view owner = known::owner_name(row.owner);
    evidence.add(
        fmt::format("{}.ns_per_step", owner), static_cast<double>(row.ns_per_step), "ns",
        how_owned(row.owner),
        sql_query(fmt::format("SELECT ns_per_step FROM budget WHERE owner = '{}'", owner)));
  }
}

}  // namespace

std::string sql_query(std::string_view select) {
  return fmt::format("culprit sql TRACE \"{}\"", select);
}

std::string fact_query(std::string_view fact) {
  return sql_query(fmt::format("SELECT value FROM facts WHERE name = '{}'", fact));
}

void state_facts(Evidence& evidence) {
  state_steps(evidence);
  state_budget(evidence);
  constexpr double kWorthAFact = 0.01;  // of the step
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    if (evidence.kernels[i].share >= kWorthAFact) state_kernel(evidence, i);
  }
}

KernelFacts state_kernel(Evidence& evidence, std::size_t index) {
  const KernelFigures figures = evidence.kernels[index];
  const auto say = [&](std::string_view field, double value, std::string unit, std::string how,
                       std::string_view column = {}) {
    const std::string path = fmt::format("kernels[{}].{}", index, field);
    if (column.empty()) column = field;
    for (const Fact& fact : evidence.facts) {
      if (fact.name == path) return fact.id;
    }
    return evidence.add(
        path, value, std::move(unit), std::move(how),
        sql_query(fmt::format("SELECT {} FROM kernels WHERE kernel = {}", column, index)));
  };
  KernelFacts facts;
  facts.calls = say("calls_per_step", figures.calls_per_step, "1", "calls over used steps");
  facts.time = say("ns_per_step", static_cast<double>(figures.ns_per_step), "ns",
                   "sum of durations over used steps");
  facts.average = say("avg_ns", static_cast<double>(figures.avg_ns), "ns", "mean duration");
  facts.exposed = say("exposed_ns_per_step", static_cast<double>(figures.exposed_ns_per_step), "ns",
                      "time in which no other kernel ran");
  if (figures.elements) {
    facts.elements = figures.elements_exact
                         ? say("elements.exact", static_cast<double>(*figures.elements_exact),
                               "element", figures.elements_how, "elements")
                         : say("elements.max", static_cast<double>(figures.elements->max),
                               "element", "grid x elements per block", "elements_max");
  }
  if (figures.bytes) {
    facts.bytes =
        say("bytes", static_cast<double>(*figures.bytes), "byte",
            fmt::format("per call: {} read, {} written", known::dtype_name(figures.dtype_in),
                        known::dtype_name(figures.dtype_out)));
  }
  if (figures.gbps) facts.gbps = say("gbps", *figures.gbps, "GB/s", "bytes / avg_ns");
  if (figures.of_peak) {
    facts.of_peak =
        say("of_peak", *figures.of_peak, "1",
            fmt::format("gbps / {:g} GB/s ({})", evidence.peak.gbps, evidence.peak.source));
  }
  return facts;
}

}  // namespace culprit::evidence
