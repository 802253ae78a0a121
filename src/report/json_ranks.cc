#include "report/json_ranks.h"

#include <algorithm>

#include "evidence/ranks.h"

namespace culprit::report {
namespace {

constexpr auto kBlock = JsonLayout::kBlock;
constexpr auto kLine = JsonLayout::kLine;

using evidence::RankFigures;
using evidence::Ranks;
using evidence::RankSkew;

// Who waits for whom is known of ranks that met others.
const RankSkew* skew_of(const Ranks& ranks, std::size_t index) {
  if (!ranks.skew.known()) return nullptr;
  const RankSkew& skew = ranks.skew.ranks[index];
  return skew.clock.aligned && skew.meetings > 0 ? &skew : nullptr;
}

// A rank by its number where it has one, else by its place in the list.
std::int64_t number_of(const Ranks& ranks, std::size_t index) {
  return ranks.all[index].rank.value_or(static_cast<std::int64_t>(index));
}

void write_clock(JsonWriter& w, const RankSkew* skew) {
  constexpr double kPartsPerMillion = 1e6;
  constexpr int kDigits = 6;
  const auto known = [&](std::int64_t value) { return skew ? std::optional(value) : std::nullopt; };
  const evidence::Clock clock = skew ? skew->clock : evidence::Clock{};
  w.integer("clock_offset_ns", known(clock.offset));
  w.number("clock_drift_ppm", skew ? std::optional(clock.drift * kPartsPerMillion) : std::nullopt,
           kDigits);
  w.integer("clock_residual_ns", known(clock.residual));
}

void write_lateness(JsonWriter& w, const Ranks& ranks, std::size_t index, const RankSkew* skew) {
  const auto known = [&](std::int64_t value) { return skew ? std::optional(value) : std::nullopt; };
  w.integer("collectives", known(skew ? skew->meetings : 0));
  w.integer("last_to", known(skew ? skew->last : 0));
  const bool late = skew && std::find(ranks.skew.late.begin(), ranks.skew.late.end(), index) !=
                                ranks.skew.late.end();
  w.text_or_null("late_because",
                 late ? evidence::late_cause_name(skew->cause) : std::string_view());
  w.integer("absent_wait_ns_per_step", known(skew ? skew->absent : 0));
  w.integer("waits_for", skew && skew->waits_for ? std::optional(number_of(ranks, *skew->waits_for))
                                                 : std::nullopt);
}

void write_rank(JsonWriter& w, const Ranks& ranks, std::size_t index) {
  const RankFigures& rank = ranks.all[index];
  const RankSkew* skew = rank.refused ? nullptr : skew_of(ranks, index);
  const auto known = [&](std::int64_t value) {
    return rank.refused ? std::nullopt : std::optional(value);
  };
  w.begin_object({}, kBlock);
  w.integer("rank", rank.rank);
  w.text_or_null("label", rank.label);
  w.text_or_null("process", rank.process);
  w.integer("device", rank.device);
  w.boolean("headline", index == ranks.headline);
  w.text_or_null("refused", rank.refused ? rank.refused->what : std::string());
  w.integer("kernels", known(rank.kernels));
  w.integer("kernel_ns", known(rank.kernel_ns));
  w.integer("busy_ns", known(rank.busy_ns));
  w.text_or_null("kind", rank.refused ? std::string_view() : run::step_kind_name(rank.kind));
  w.integer("steps", known(rank.steps.used));
  w.integer("mean_ns", known(rank.steps.mean));
  w.integer("work_ns_per_step", known(rank.work_ns_per_step));
  w.integer("comm_ns_per_step", known(rank.comm_ns_per_step));
  w.integer("wait_ns_per_step", skew ? std::optional(rank.wait_ns_per_step) : std::nullopt);
  write_clock(w, skew);
  write_lateness(w, ranks, index, skew);
  write_budget(w, rank.budget);
  w.end();
}

}  // namespace

void write_budget(JsonWriter& w, const std::vector<evidence::BudgetRow>& budget) {
  w.begin_array("budget", kBlock);
  for (const evidence::BudgetRow& row : budget) {
    w.begin_object({}, kLine);
    w.text("owner", known::owner_name(row.owner));
    w.integer("ns_per_step", row.ns_per_step);
    w.number("share", row.share);
    w.number("calls_per_step", row.calls_per_step, 9);
    w.end();
  }
  w.end();
}

void write_ranks(JsonWriter& w, const Answer& answer) {
  w.begin_array("ranks", kBlock);
  for (std::size_t i = 0; answer.usable() && i < answer.ranks.all.size(); ++i)
    write_rank(w, answer.ranks, i);
  w.end();
}

void write_fleet(JsonWriter& w, const FleetFigures& fleet) {
  w.begin_object("fleet", kBlock);
  w.integer("traces", fleet.traces);
  w.integer("bytes", fleet.bytes);
  w.integer("captures", fleet.captures);
  w.begin_array("skipped", kBlock);
  for (const FleetFigures::Skipped& skipped : fleet.skipped) {
    w.begin_object({}, kLine);
    w.text("path", skipped.path);
    w.text("code", skipped.code);
    w.text("why", skipped.why);
    w.end();
  }
  w.end();
  w.integer("collectives", fleet.collectives);
  w.integer("collectives_related", fleet.related);
  w.end();
}

}  // namespace culprit::report
