// What a suspect costs, what removing it buys at most, and what bounds the step then.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

// All used steps of one batch size, or 0.
std::int64_t common_batch(const run::Run& run) {
  std::int64_t batch = 0;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    const std::int64_t its = step.batch.value_or(0);
    if (its <= 0 || (batch != 0 && batch != its)) return 0;
    batch = its;
  }
  return batch;
}

bool host_owned(Owner owner) {
  return owner == Owner::kIdleHostLaunch || owner == Owner::kIdleHostSync ||
         owner == Owner::kIdleHostWork || owner == Owner::kIdleStall;
}

std::string bound_after(const evidence::Evidence& evidence, Nanos left,
                        std::span<const Owner> cured) {
  // The host needs its time for a step whatever the device does: with less device time than that
  // left, the launches bound the step, unless they are what the fix cures.
  const bool launches_cured =
      std::find(cured.begin(), cured.end(), Owner::kIdleHostLaunch) != cured.end();
  if (!launches_cured && evidence.steps.host_ns > left) return "host-launch";
  Nanos comm = 0, host = 0, rest = 0;
  for (const evidence::BudgetRow& row : evidence.budget) {
    if (std::find(cured.begin(), cured.end(), row.owner) != cured.end()) continue;
    (known::is_comm(row.owner) ? comm : host_owned(row.owner) ? host : rest) += row.ns_per_step;
  }
  if (host > comm && host > rest) return "host-launch";
  return comm > rest ? "communication" : "gpu";
}

}  // namespace

const evidence::BudgetRow* row_of(const evidence::Evidence& evidence, Owner owner) {
  const auto row = std::find_if(evidence.budget.begin(), evidence.budget.end(),
                                [&](const auto& each) { return each.owner == owner; });
  return row == evidence.budget.end() ? nullptr : &*row;
}

Nanos time_of(const evidence::Evidence& evidence, Owner owner) {
  const evidence::BudgetRow* row = row_of(evidence, owner);
  return row != nullptr ? row->ns_per_step : 0;
}

std::string fact_named(const evidence::Evidence& evidence, std::string_view name) {
  for (const evidence::Fact& fact : evidence.facts) {
    if (fact.name == name) return fact.id;
  }
  return {};
}

std::string cost_text(const evidence::Evidence& evidence, Nanos ns) {
  const Nanos step = evidence.steps.mean;
  const double share = step > 0 ? static_cast<double>(ns) / static_cast<double>(step) : 0;
  return fmt::format("{} of the {} step ({})", text::duration(ns, false),
                     text::duration(step, false), text::percent(share));
}

Gain bound_gain(const evidence::Evidence& evidence, Nanos exposed, std::span<const Owner> cured) {
  Gain gain;
  gain.step_now = gain.high = evidence.steps.mean;
  gain.low = gain.expected = std::max<Nanos>(0, evidence.steps.mean - exposed);
  gain.bound_by_after = bound_after(evidence, gain.expected, cured);
  const std::int64_t batch = common_batch(*evidence.run);
  if (batch > 0 && gain.expected > 0) {
    gain.tokens_per_s_after = 1e9 * static_cast<double>(batch) / static_cast<double>(gain.expected);
  }
  return gain;
}

void set_cost(const evidence::Evidence& evidence, std::span<const Owner> cured, Suspect& suspect) {
  const Nanos step = evidence.steps.mean;
  if (step > 0) {
    suspect.share = static_cast<double>(suspect.exposed_ns_per_step) / static_cast<double>(step);
  }
  suspect.gain = bound_gain(evidence, suspect.exposed_ns_per_step, cured);
}

}  // namespace culprit::verdict
