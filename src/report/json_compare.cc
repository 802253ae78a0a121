// The --json document of `culprit compare`; field by field docs/schema/compare.schema.json.
#include <algorithm>

#include "report/compare_words.h"
#include "report/json_parts.h"
#include "report/json_writer.h"

namespace culprit::report {
namespace {

constexpr auto kBlock = JsonLayout::kBlock;
constexpr auto kLine = JsonLayout::kLine;
constexpr int kCallDigits = 9, kShareDigits = 6;

using compare::Comparison;

void write_quality(JsonWriter& w, const Comparison& c) {
  w.begin_object("quality", kBlock);
  w.boolean("usable", c.outcome != compare::Outcome::kNotComparable);
  w.begin_array("notes", kBlock);
  for (const store::Note& note : notes_of(c)) write_note(w, note);
  w.end();
  w.end();
}

void write_stalls(JsonWriter& w, const std::vector<compare::Stall>& stalls) {
  w.begin_array("outliers", kLine);
  for (const compare::Stall& stall : stalls) {
    w.begin_object({}, kLine);
    w.integer("index", stall.index);
    w.integer("ns", stall.length);
    w.text("cause", stall.cause);
    w.boolean("waited", stall.waited);
    w.end();
  }
  w.end();
}

void write_steps(JsonWriter& w, const compare::Side& side, bool known) {
  const evidence::StepStats& steps = side.steps;
  const auto value = [known](std::int64_t of) { return known ? std::optional(of) : std::nullopt; };
  w.begin_object("steps", kBlock);
  w.integer("count", value(steps.found));
  w.text_or_null("kind", known ? run::step_kind_name(side.kind) : std::string_view());
  w.text_or_null("how", known ? run::steps_how_name(side.how) : std::string_view());
  w.integer("batch", side.batch);
  w.integer("tokens", steps.tokens);
  w.integer("mean_ns", value(steps.mean));
  w.integer("median_ns", value(steps.median));
  w.integer("p99_ns", value(steps.p99));
  w.integer("used", value(steps.used));
  w.begin_array("excluded", kLine);
  for (const auto& [index, why] : side.excluded) {
    w.begin_object({}, kLine);
    w.integer("index", index);
    w.text("why", why);
    w.end();
  }
  w.end();
  write_stalls(w, side.stalls);
  w.integer("stalled_ns_per_step", value(side.stalled_per_step));
  w.integer("device_span_ns", value(steps.device_span));
  w.number("device_busy", known ? std::optional(steps.device_busy) : std::nullopt);
  w.integer("busy_ns", value(steps.busy_ns));
  w.integer("activity_ns", value(steps.activity_ns));
  w.integer("host_ns", known_or_null(steps.host_ns));
  w.end();
}

void write_side(JsonWriter& w, std::string_view key, const compare::Side& side) {
  const bool known = !side.format.empty();
  w.begin_object(key, kBlock);
  w.begin_array("inputs", kLine);
  w.begin_object({}, kLine);
  w.text("path", side.path);
  w.text_or_null("format", side.format);
  w.integer("bytes", known ? std::optional(side.file_bytes) : std::nullopt);
  w.integer("events", known ? std::optional(side.events) : std::nullopt);
  w.integer("rank", side.rank);
  w.end();
  w.end();
  w.text_or_null("device", side.device);
  w.integer("layers", side.layers);
  w.number("kernels_per_step", known ? std::optional(side.kernels_per_step) : std::nullopt,
           kCallDigits);
  w.number("launches_per_step", side.launches_per_step, kCallDigits);
  w.number("replayed", known ? std::optional(side.replayed) : std::nullopt, kShareDigits);
  write_steps(w, side, known);
  w.end();
}

void write_budget(JsonWriter& w, const Comparison& c) {
  w.begin_array("budget", kBlock);
  for (const compare::BudgetDelta& row : c.budget) {
    w.begin_object({}, kLine);
    w.text("owner", known::owner_name(row.owner));
    w.integer("before_ns", row.before);
    w.integer("after_ns", row.after);
    w.integer("delta_ns", row.delta());
    w.number("calls_before", row.calls_before, kCallDigits);
    w.number("calls_after", row.calls_after, kCallDigits);
    w.end();
  }
  w.end();
}

void write_kernel_side(JsonWriter& w, std::string_view key,
                       const std::optional<compare::KernelSide>& side) {
  if (!side) return w.null(key);
  w.begin_object(key, kLine);
  w.text("name", side->name);
  w.text("short", side->short_name);
  w.number("calls_per_step", side->calls_per_step, kCallDigits);
  w.integer("ns_per_step", side->ns_per_step);
  w.integer("avg_ns", side->avg_ns);
  write_dim3(w, "grid", side->grid);
  write_dim3(w, "block", side->block);
  w.integer("bytes", side->bytes);
  w.integer("elements", side->elements);
  w.text_or_null("op", side->op);
  w.end();
}

void write_kernels(JsonWriter& w, const Comparison& c) {
  w.begin_array("kernels", kBlock);
  for (const compare::KernelChange& kernel : c.kernels) {
    w.begin_object({}, kBlock);
    w.text("role", known::owner_name(kernel.role));
    w.text("change", compare::change_name(kernel.change));
    w.text_or_null("place", kernel.place);
    w.integer("delta_ns", kernel.delta());
    write_kernel_side(w, "before", kernel.before);
    write_kernel_side(w, "after", kernel.after);
    w.end();
  }
  w.end();
}

void write_gain(JsonWriter& w, const Comparison& c, const compare::Cause& cause) {
  // What is to be gained is what this cause cost, from the step after.
  if (cause.exposed <= 0) return w.null("gain");
  const Nanos now = c.after.steps.mean + (cause.beside_steps ? c.after.stalled_per_step : 0);
  const Nanos then = std::max<Nanos>(0, now - cause.exposed);
  w.begin_object("gain", kBlock);
  w.integer("step_ns_now", now);
  w.begin_object("step_ns_after", kLine);
  w.integer("low", then);
  w.integer("expected", then);
  w.integer("high", now);
  w.end();
  const bool tokens = c.after.kind == run::StepKind::kDecode && c.after.batch && then > 0;
  w.number("tokens_per_s_after", tokens ? std::optional(1e9 * static_cast<double>(*c.after.batch) /
                                                        static_cast<double>(then))
                                        : std::nullopt);
  w.null("bound_by_after");
  w.text("method", "bound");
  w.end();
}

void write_kernel_names(JsonWriter& w, const Comparison& c, const compare::Cause& cause) {
  std::vector<std::string> names;
  for (const std::size_t k : cause.kernels) {
    for (const auto* side : {&c.kernels[k].before, &c.kernels[k].after}) {
      if (!*side) continue;
      const bool known = std::find(names.begin(), names.end(), (*side)->name) != names.end();
      if (!known) names.push_back((*side)->name);
    }
  }
  texts(w, "kernels", names);
}

void write_cause(JsonWriter& w, const Comparison& c, std::size_t index) {
  const compare::Cause& cause = c.causes[index];
  const auto of = [&](Nanos whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(cause.exposed) / static_cast<double>(whole);
  };
  w.begin_object({}, kBlock);
  w.text("id", cause.id);
  w.integer("rank", static_cast<std::int64_t>(index) + 1);
  w.text("verdict", verdict::standing_name(cause.standing));
  w.text("confidence", verdict::confidence_name(cause.confidence));
  w.text("claim", cause.claim);
  w.integer("ns_per_step", cause.ns);
  w.integer("exposed_ns_per_step", cause.exposed);
  w.number("share", of(c.before.steps.mean), kShareDigits);
  w.number("of_delta", cause.beside_steps ? std::nullopt : of(c.delta), kShareDigits);
  w.boolean("beside_steps", cause.beside_steps);
  write_kernel_names(w, c, cause);
  w.begin_array("where", kBlock);
  for (const run::Source& source : cause.where) write_source(w, {}, source);
  w.end();
  write_tensor(w, cause.tensor);
  w.null("live_fraction");
  texts(w, "facts", cause.facts);
  w.text("disproved_if", cause.disproved_if);
  w.begin_object("fix", kLine);
  w.text("summary", cause.fix);
  texts(w, "alternatives", cause.alternatives);
  w.begin_array("options", kLine);
  w.end();
  w.end();
  write_gain(w, c, cause);
  w.end();
}

void write_findings(JsonWriter& w, const Comparison& c) {
  w.begin_array("suspects", kBlock);
  for (std::size_t i = 0; i < c.causes.size(); ++i) write_cause(w, c, i);
  w.end();
  write_ruled_out(w, c.ruled_out);
  write_facts(w, c.facts);
}

void write_ranks(JsonWriter& w, const compare::Comparisons& pairs) {
  w.begin_array("ranks", kBlock);
  for (std::size_t i = 0; pairs.all.size() > 1 && i < pairs.all.size(); ++i) {
    const Comparison& c = pairs.all[i].comparison;
    w.begin_object({}, kBlock);
    w.text("name", pairs.all[i].name);
    w.integer("rank", c.before.rank);
    w.boolean("headline", i == pairs.headline);
    w.text("before", c.before.path);
    w.text("after", c.after.path);
    w.text("verdict", compare::outcome_name(c.outcome));
    w.integer("before_ns", c.before.steps.mean);
    w.integer("after_ns", c.after.steps.mean);
    w.integer("delta_ns_per_step", c.delta);
    w.integer("comm_delta_ns_per_step", compare::communication_delta(c));
    w.number("p_value", c.p_value, kShareDigits);
    w.begin_array("suspects", kLine);
    for (const compare::Cause& cause : c.causes) {
      w.begin_object({}, kLine);
      w.text("id", cause.id);
      w.integer("ns_per_step", cause.ns);
      w.integer("exposed_ns_per_step", cause.exposed);
      w.text("claim", cause.claim);
      w.end();
    }
    w.end();
    write_stalls(w, c.after.stalls);
    w.end();
  }
  w.end();
}

}  // namespace

std::string render_comparison_json(const compare::Comparisons& pairs, std::optional<double> gate) {
  const Comparison& c = pairs.main();
  const bool usable = c.outcome != compare::Outcome::kNotComparable;
  JsonWriter w;
  begin_document(w, "compare");
  write_quality(w, c);
  write_side(w, "before", c.before);
  write_side(w, "after", c.after);
  w.text("verdict", compare::outcome_name(c.outcome));
  w.text("headline", comparison_headline(c));
  w.integer("delta_ns_per_step", usable ? std::optional(c.delta) : std::nullopt);
  w.number("delta_share", usable ? std::optional(c.share) : std::nullopt, kShareDigits);
  if (c.significant)
    w.boolean("significant", *c.significant);
  else
    w.null("significant");
  w.integer("noise_ns", c.noise);
  w.number("p_value", c.p_value, kShareDigits);
  if (gate) {
    w.begin_object("gate", kLine);
    w.number("fail_above", *gate, kShareDigits);
    w.boolean("failed", gate_fails(pairs, gate));
    w.end();
  } else {
    w.null("gate");
  }
  write_budget(w, c);
  write_kernels(w, c);
  write_findings(w, c);
  write_ranks(w, pairs);
  w.end();
  return w.take();
}

}  // namespace culprit::report
