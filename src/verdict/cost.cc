// What a suspect costs, what removing it buys at most, and what bounds the step then.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

// Tokens that a decode step yields: the batch where all used steps share one; else 0, unknown.
std::int64_t common_batch(const run::Run& run) {
  if (run.kind != run::StepKind::kDecode) return 0;
  std::int64_t batch = 0;
  for (const run::Step& step : run.steps) {
    if (!step.used) continue;
    const std::int64_t its = step.batch.value_or(0);
    if (its <= 0 || (batch != 0 && batch != its)) return 0;
    batch = its;
  }
  return batch;
}

// What an owner's time is bound by, in the words of the contract.
std::string_view bound_of(Owner owner) {
  switch (owner) {
    case Owner::kIdleHostLaunch:
      return "host-launch";
    case Owner::kIdleHostSync:
      return "host-sync";
    case Owner::kIdleHostWork:
      return "host-work";
    case Owner::kIdleStall:
      return "step-stall";
    case Owner::kUnexplained:
      return "unexplained";
    default:
      return known::is_comm(owner) ? "communication" : "gpu";
  }
}

std::string bound_after(const evidence::Evidence& evidence, Nanos left,
                        std::span<const Owner> cured) {
  const auto is_cured = [&](Owner owner) {
    return std::find(cured.begin(), cured.end(), owner) != cured.end();
  };
  // The host needs its time for a step whatever the device does: with less device time than that
  // left, the launches bound the step, unless they are what the fix cures.
  if (!is_cured(Owner::kIdleHostLaunch) && evidence.steps.host_ns > left) return "host-launch";
  std::vector<std::pair<std::string_view, Nanos>> bounds;
  for (const evidence::BudgetRow& row : evidence.budget) {
    if (is_cured(row.owner)) continue;
    const std::string_view bound = bound_of(row.owner);
    const auto entry = std::find_if(bounds.begin(), bounds.end(),
                                    [&](const auto& each) { return each.first == bound; });
    if (entry == bounds.end()) {
      bounds.emplace_back(bound, row.ns_per_step);
    } else {
      entry->second += row.ns_per_step;
    }
  }
  const auto largest =
      std::max_element(bounds.begin(), bounds.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == bounds.end() ? std::string() : std::string(largest->first);
}

// The window's steps stand for all used ones: its ratio of after to now is taken. Low: the host costs
// nothing; expected: as the step without a profiler says, where it is known, else as profiled; high:
// as profiled.
Gain retimed_gain(const evidence::Evidence& evidence, evidence::Change change) {
  const evidence::Retimer& retimer = *evidence.retimer;
  evidence::Change unchanged;
  unchanged.host = evidence.host_factor;
  const double now = evidence.known.tpot_ms ? *evidence.known.tpot_ms * 1e6
                                            : static_cast<double>(evidence.steps.mean);
  const double per_ns =
      now / static_cast<double>(std::max<Nanos>(1, retimer.retime(unchanged).step));
  const auto after = [&](double host) {
    change.host = host;
    return retimer.retime(change);
  };
  const auto in_all_steps = [&](const evidence::Retimed& retimed) {
    return static_cast<Nanos>(std::llround(per_ns * static_cast<double>(retimed.step)));
  };
  const evidence::Retimed expected = after(evidence.host_factor);
  Gain gain;
  gain.method = "retimed";
  gain.step_now = std::llround(now);
  gain.expected = std::min(gain.step_now, in_all_steps(expected));
  gain.low = std::min(gain.expected, in_all_steps(after(0)));
  gain.high = std::max(gain.expected, in_all_steps(after(1)));
  gain.bound_by_after = evidence::bound_name(expected.bound);
  return gain;
}

}  // namespace

Gain bound_gain(const evidence::Evidence& evidence, Nanos exposed, std::span<const Owner> cured) {
  Gain gain;
  gain.step_now = gain.high = evidence.steps.mean;
  gain.low = gain.expected = std::max<Nanos>(0, evidence.steps.mean - exposed);
  gain.bound_by_after = bound_after(evidence, gain.expected, cured);
  return gain;
}

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

std::string own_query(std::string_view fact) { return evidence::fact_query(fact); }

std::string cost_text(const evidence::Evidence& evidence, Nanos ns) {
  const Nanos step = evidence.steps.mean;
  const double share = step > 0 ? static_cast<double>(ns) / static_cast<double>(step) : 0;
  return fmt::format("{} of the {} step ({})", text::duration(ns, true), text::duration(step, true),
                     text::percent(share));
}

evidence::Change scaled(const evidence::Evidence& evidence, std::span<const run::GroupId> groups,
                        double scale) {
  evidence::Change change;
  change.scale.assign(evidence.run->groups.size(), 1);
  for (const run::GroupId group : groups) change.scale[group.index] = scale;
  return change;
}

Gain gain_of(const evidence::Evidence& evidence, Nanos exposed, const Cure& cure) {
  Gain gain = evidence.retimer && evidence.retimer->off().empty()
                  ? retimed_gain(evidence, cure.change)
                  : bound_gain(evidence, exposed, cure.owners);
  bound_by_ranks(evidence, cure.change, gain);
  const std::int64_t batch = common_batch(*evidence.run);
  if (batch > 0 && gain.expected > 0) {
    gain.tokens_per_s_after = 1e9 * static_cast<double>(batch) / static_cast<double>(gain.expected);
  }
  return gain;
}

Gain interruption_gain(const evidence::Evidence& evidence, Nanos per_step) {
  Gain gain;
  gain.step_now = gain.high = evidence.steps.mean + per_step;
  gain.low = gain.expected = evidence.steps.mean;
  return gain;
}

void set_cost(const evidence::Evidence& evidence, const Cure& cure, Suspect& suspect) {
  const Nanos step = evidence.steps.mean;
  if (step > 0) {
    suspect.share = static_cast<double>(suspect.exposed_ns_per_step) / static_cast<double>(step);
  }
  suspect.change = cure.change;
  suspect.gain = gain_of(evidence, suspect.exposed_ns_per_step, cure);
}

}  // namespace culprit::verdict
