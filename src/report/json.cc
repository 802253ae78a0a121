// The --json document. Its shape is always the same: what is not known is null or empty, never
// absent, so that a reader needs no case for input without a verdict. Field by field it follows
// docs/schema/answer.schema.json.
#include <algorithm>
#include <charconv>
#include <span>

#include "report/explain.h"
#include "report/json_floor.h"
#include "report/json_parts.h"
#include "report/json_ranks.h"
#include "report/json_writer.h"
#include "report/table.h"
#include "report/views.h"

namespace culprit::report {
namespace {

constexpr auto kBlock = JsonLayout::kBlock;
constexpr auto kLine = JsonLayout::kLine;

void write_file(JsonWriter& w, std::string_view path, const store::TraceInfo* info,
                std::optional<std::int64_t> rank) {
  w.begin_object({}, kLine);
  w.text("path", path);
  w.text_or_null("format", info ? info->format : std::string_view());
  w.integer("bytes", info ? std::optional(info->file_bytes) : std::nullopt);
  w.integer("events", info ? std::optional(info->events) : std::nullopt);
  w.integer("rank", rank);
  w.end();
}

void write_input(JsonWriter& w, const Answer& answer) {
  const store::TraceInfo* info = answer.info;
  w.begin_array("inputs", kBlock);
  for (const InputFile& file : answer.inputs) write_file(w, file.path, &file.info, file.rank);
  if (answer.inputs.empty()) write_file(w, answer.path, info, info ? info->rank : std::nullopt);
  w.end();
}

void write_lending(JsonWriter& w, const run::Lending& lending) {
  w.begin_object({}, kLine);
  w.text("path", lending.path);
  w.text("found", lending.found);
  w.text_or_null("script", lending.script);
  w.text_or_null("verified_by", lending.verified_by);
  w.integer("kernels", lending.kernels);
  w.integer("total_ns", lending.time);
  w.boolean("shapes", lending.shapes);
  w.end();
}

void write_quality(JsonWriter& w, const Answer& answer) {
  w.begin_object("quality", kBlock);
  w.boolean("usable", answer.usable());
  const evidence::Evidence* evidence = answer.usable() ? answer.evidence : nullptr;
  const auto share = [&](double evidence::Attribution::*member) {
    return evidence ? std::optional(evidence->attributed.*member) : std::nullopt;
  };
  w.begin_object("gpu_time_attributed", kLine);
  w.number("op", share(&evidence::Attribution::op));
  w.number("source", share(&evidence::Attribution::source));
  w.number("step", share(&evidence::Attribution::step));
  w.number("layer", share(&evidence::Attribution::layer));
  w.end();
  w.begin_array("mapping", kBlock);
  if (answer.usable())
    for (const run::Lending& lending : answer.run->lendings) write_lending(w, lending);
  w.end();
  w.begin_array("notes", kBlock);
  for (const store::Note& note : all_notes(answer)) write_note(w, note);
  w.end();
  w.end();
}

void write_device(JsonWriter& w, const Answer& answer) {
  const bool usable = answer.usable();
  const evidence::Peak peak = usable ? answer.evidence->peak : evidence::Peak{};
  const bool known = peak.gbps > 0;
  w.begin_object("device", kLine);
  w.text_or_null("name", usable ? device_name(*answer.run) : std::string());
  w.text_or_null("arch", usable ? device_arch(answer) : std::string());
  w.integer("sms", usable ? known_or_null(device_sms(*answer.run)) : std::nullopt);
  w.number("peak_gbps", known ? std::optional(peak.gbps) : std::nullopt);
  w.text_or_null("peak_source", known ? std::string_view(peak.source) : std::string_view());
  if (known) {
    w.boolean("peak_verified", peak.verified);
  } else {
    w.null("peak_verified");
  }
  const known::Gpu gpu = usable && answer.run->gpu ? answer.run->gpu->gpu : known::Gpu{};
  w.number("half_tflops", gpu.half_tflops > 0 ? std::optional(gpu.half_tflops) : std::nullopt);
  w.number("fp8_tflops", gpu.fp8_tflops > 0 ? std::optional(gpu.fp8_tflops) : std::nullopt);
  w.end();
}

void write_model(JsonWriter& w, const Answer& answer) {
  const bool usable = answer.usable();
  const auto counted = usable ? answer.run->layers.count : std::nullopt;
  w.begin_object("model", kLine);
  if (usable && answer.evidence->known.model) {
    const known::Model& model = *answer.evidence->known.model;
    w.text_or_null("name", model.name);
    w.integer("layers", known_or_null(model.layers));
    w.text("source", "config");
  } else {
    w.null("name");
    w.integer("layers", counted);
    w.text_or_null("source", counted ? "trace" : "");
  }
  w.end();
}

std::string_view cause_of(const Answer& answer, const run::Step* step) {
  for (const evidence::Outlier& outlier : answer.evidence->outliers) {
    if (&answer.run->steps[static_cast<std::size_t>(outlier.step)] == step) return outlier.cause;
  }
  return "unknown";
}

void write_step_lists(JsonWriter& w, const Answer& answer, const run::Run& run) {
  const std::vector<const run::Step*> steps = main_steps(run);
  w.begin_array("excluded", kLine);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]->used) continue;
    w.begin_object({}, kLine);
    w.integer("index", static_cast<std::int64_t>(i));
    w.text("why", steps[i]->why_excluded);
    w.end();
  }
  w.end();
  w.begin_object("other_kinds", kLine);
  for (int k = 0; k <= static_cast<int>(run::StepKind::kIdle); ++k) {
    const auto kind = static_cast<run::StepKind>(k);
    const auto count = std::count_if(run.steps.begin(), run.steps.end(),
                                     [kind](const run::Step& step) { return step.kind == kind; });
    if (kind != run.kind && count > 0) w.integer(run::step_kind_name(kind), count);
  }
  w.end();
  w.begin_array("groups", kBlock);
  for (const StepGroup& group : step_groups(run)) {
    w.begin_object({}, kLine);
    w.text("kind", run::step_kind_name(group.kind));
    w.integer("batch", group.batch);
    w.integer("count", group.count);
    w.integer("median_ns", group.median);
    w.end();
  }
  w.end();
  w.begin_array("outliers", kLine);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]->used || steps[i]->why_excluded != "outlier") continue;
    w.begin_object({}, kLine);
    w.integer("index", static_cast<std::int64_t>(i));
    w.integer("ns", steps[i]->length());
    w.text("cause", cause_of(answer, steps[i]));
    w.end();
  }
  w.end();
}

void write_steps(JsonWriter& w, const Answer& answer) {
  const bool usable = answer.usable();
  const auto known = [&](auto evidence::StepStats::*member) {
    using Value = std::remove_reference_t<decltype(answer.evidence->steps.*member)>;
    return usable ? std::optional<Value>(answer.evidence->steps.*member) : std::nullopt;
  };
  w.begin_object("steps", kBlock);
  w.integer("count", known(&evidence::StepStats::found));
  w.text_or_null("kind", usable ? run::step_kind_name(answer.run->kind) : std::string_view());
  w.text_or_null("how", usable ? run::steps_how_name(answer.run->how) : std::string_view());
  w.integer("mean_ns", known(&evidence::StepStats::mean));
  w.integer("median_ns", known(&evidence::StepStats::median));
  w.integer("p99_ns", known(&evidence::StepStats::p99));
  w.integer("used", known(&evidence::StepStats::used));
  w.integer("device_span_ns", known(&evidence::StepStats::device_span));
  w.number("device_busy", known(&evidence::StepStats::device_busy));
  w.integer("busy_ns", known(&evidence::StepStats::busy_ns));
  w.integer("activity_ns", known(&evidence::StepStats::activity_ns));
  w.integer("host_ns", usable ? known_or_null(answer.evidence->steps.host_ns) : std::nullopt);
  w.integer("tokens", usable ? answer.evidence->steps.tokens : std::nullopt);
  w.text_or_null("tokens_how", usable ? answer.evidence->steps.tokens_how : std::string());
  const run::Run none;
  write_step_lists(w, answer, usable ? *answer.run : none);
  w.end();
}

void write_layers(JsonWriter& w, const Answer& answer) {
  const run::Layers layers = answer.usable() ? answer.run->layers : run::Layers{};
  w.begin_object("layers", kLine);
  w.integer("count", layers.count);
  w.text_or_null("how", layers.how);
  w.integer("first_dense", layers.first_dense);
  w.text_or_null("index", layers.ns.empty() ? std::string_view() : "inferred");
  integers(w, "ns", layers.ns);
  w.end();
}

// Thread ids are numbers in most traces and words in some: a number stays one.
void write_thread(JsonWriter& w, std::string_view thread) {
  std::int64_t number = 0;
  const char* last = thread.data() + thread.size();
  const auto [end, error] = std::from_chars(thread.data(), last, number);
  if (error == std::errc{} && end == last) {
    w.integer("thread", number);
  } else {
    w.text_or_null("thread", thread);
  }
}

// Whose launches told operator and source: the trace's own, or those that a mapping lent.
std::string_view origin_name(const evidence::KernelFigures& kernel) {
  if (kernel.op.empty() && !kernel.source) return {};
  return kernel.lent ? "mapping" : "trace";
}

void write_kernel_origin(JsonWriter& w, const run::Run& run,
                         const evidence::KernelFigures& kernel) {
  w.text_or_null("op", kernel.op);
  texts(w, "op_chain", kernel.op_chain);
  w.text_or_null("op_from", origin_name(kernel));
  if (text_of(run, kernel.api).empty()) {
    w.null("launch");
  } else {
    w.begin_object("launch", kLine);
    w.text("api", text_of(run, kernel.api));
    write_thread(w, text_of(run, kernel.launch_thread));
    w.end();
  }
  if (kernel.source) {
    write_source(w, "source", *kernel.source);
  } else {
    w.null("source");
  }
}

void write_dtype(JsonWriter& w, std::string_view key, known::Dtype dtype) {
  w.text_or_null(key,
                 dtype == known::Dtype::kUnknown ? std::string_view() : known::dtype_name(dtype));
}

void write_elements(JsonWriter& w, const evidence::KernelFigures& kernel) {
  if (!kernel.elements && !kernel.elements_exact) return w.null("elements");
  w.begin_object("elements", kLine);
  w.integer("min", kernel.elements ? kernel.elements->min : *kernel.elements_exact);
  w.integer("max", kernel.elements ? kernel.elements->max : *kernel.elements_exact);
  w.integer("exact", kernel.elements_exact);
  w.text_or_null("how", kernel.elements_how);
  w.end();
}

void write_kernel(JsonWriter& w, const run::Run& run, const evidence::KernelFigures& kernel) {
  const run::Group& group = group_of(run, kernel);
  w.begin_object({}, kBlock);
  w.text("name", full_name(run, kernel));
  w.text("short", short_name(run, kernel));
  w.text("kind", known::owner_name(group.kind));
  w.number("calls_per_step", kernel.calls_per_step, 9);
  w.integer("ns_per_step", kernel.ns_per_step);
  w.number("share", kernel.share);
  w.integer("avg_ns", kernel.avg_ns);
  w.integer("exposed_ns_per_step", kernel.exposed_ns_per_step);
  write_dim3(w, "grid", group.grid);
  write_dim3(w, "block", group.block);
  write_elements(w, kernel);
  if (kernel.dims.empty()) {
    w.null("dims");
  } else {
    integers(w, "dims", kernel.dims);
  }
  write_dtype(w, "dtype_in", kernel.dtype_in);
  w.text_or_null("dtype_in_how", kernel.dtype_in_how);
  write_dtype(w, "dtype_out", kernel.dtype_out);
  w.integer("bytes", kernel.bytes);
  w.number("flops", kernel.matmul ? std::optional(kernel.matmul->flops()) : std::nullopt, 15);
  w.number("gbps", kernel.gbps);
  w.number("of_peak", kernel.of_peak);
  w.text("regime", evidence::regime_name(kernel.regime));
  w.text_or_null("doubt", kernel.doubt);
  write_kernel_origin(w, run, kernel);
  w.end();
}

void write_kernels(JsonWriter& w, const Answer& answer, std::size_t most) {
  w.begin_array("kernels", kBlock);
  const std::size_t count = answer.usable() ? answer.evidence->kernels.size() : 0;
  for (std::size_t k = 0; k < std::min(count, most); ++k)
    write_kernel(w, *answer.run, answer.evidence->kernels[k]);
  w.end();
}

void write_gain(JsonWriter& w, const verdict::Gain& gain) {
  if (gain.step_now <= 0) return w.null("gain");
  w.begin_object("gain", kBlock);
  w.integer("step_ns_now", gain.step_now);
  w.begin_object("step_ns_after", kLine);
  w.integer("low", gain.low);
  w.integer("expected", gain.expected);
  w.integer("high", gain.high);
  w.end();
  w.number("tokens_per_s_after",
           gain.tokens_per_s_after > 0 ? std::optional(gain.tokens_per_s_after) : std::nullopt);
  w.text_or_null("bound_by_after", gain.bound_by_after);
  w.text("method", gain.method);
  w.end();
}

void write_kernel_names(JsonWriter& w, const Answer& answer, const verdict::Suspect& suspect,
                        std::size_t most) {
  std::vector<std::string> names;
  for (const std::size_t index : suspect.kernels) {
    if (names.size() >= most) break;
    std::string name(full_name(*answer.run, answer.evidence->kernels[index]));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  texts(w, "kernels", names);
}

void write_suspect(JsonWriter& w, const Answer& answer, std::size_t index,
                   const JsonLimits& limits) {
  const verdict::Suspect& suspect = answer.verdict->suspects[index];
  w.begin_object({}, kBlock);
  w.text("id", suspect.id);
  w.integer("rank", static_cast<std::int64_t>(index) + 1);
  w.text("verdict", verdict::standing_name(suspect.standing));
  if (!suspect.cause.empty()) w.text("cause", suspect.cause);
  w.text("confidence", verdict::confidence_name(suspect.confidence));
  w.text("claim", suspect.claim);
  w.integer("ns_per_step", suspect.ns_per_step);
  w.integer("exposed_ns_per_step", suspect.exposed_ns_per_step);
  w.number("share", suspect.share);
  write_kernel_names(w, answer, suspect, limits.kernels_of_suspect);
  w.begin_array("where", kBlock);
  for (const run::Source& source : suspect.where) write_source(w, {}, source);
  w.end();
  write_tensor(w, suspect.tensor);
  w.number("live_fraction", suspect.live_fraction);
  texts(w, "facts", suspect.facts);
  w.text("disproved_if", suspect.disproved_if);
  w.begin_object("fix", kBlock);
  w.text("summary", suspect.fix);
  texts(w, "alternatives", suspect.alternatives);
  w.begin_array("options", kBlock);
  for (const verdict::Remedy& remedy : suspect.remedies) {
    w.begin_object({}, kBlock);
    w.text("name", remedy.name);
    w.text("summary", remedy.summary);
    write_gain(w, remedy.gain);
    w.end();
  }
  w.end();
  w.end();
  write_gain(w, suspect.gain);
  w.end();
}

void write_verdict(JsonWriter& w, const Answer& answer, const JsonLimits& limits) {
  const verdict::Verdict none;
  const verdict::Verdict& verdict = answer.usable() ? *answer.verdict : none;
  w.text_or_null("headline", verdict.headline);
  w.begin_array("suspects", kBlock);
  for (std::size_t i = 0; i < verdict.suspects.size(); ++i) write_suspect(w, answer, i, limits);
  w.end();
  write_ruled_out(w, verdict.ruled_out);
  w.begin_array("healthy", kBlock);
  for (const verdict::Healthy& healthy : verdict.healthy) {
    w.begin_object({}, kLine);
    w.text("what", healthy.what);
    w.text("because", healthy.because);
    w.integer("at_most_gain_ns", healthy.at_most_gain);
    w.end();
  }
  w.end();
}

void write_retiming(JsonWriter& w, const Answer& answer) {
  constexpr int kDigits = 6;
  const evidence::Retimer* retimer = answer.usable() ? answer.evidence->retimer.get() : nullptr;
  const bool tells = retimer != nullptr && retimer->steps() > 0;
  w.begin_object("retiming", kLine);
  if (tells) {
    w.number("reproduces_step_within", retimer->error(), kDigits);
    w.integer("residual_ns", retimer->residual());
    w.integer("steps", retimer->steps());
  } else {
    w.null("reproduces_step_within");
    w.null("residual_ns");
    w.integer("steps", 0);
  }
  w.text_or_null("off", retimer != nullptr ? retimer->off() : std::string());
  w.end();
}

void write_path(JsonWriter& w, std::string_view key, const evidence::Retimed& retimed) {
  w.begin_object(key, kLine);
  for (std::size_t i = 0; i < evidence::kBounds; ++i) {
    w.integer(evidence::bound_name(static_cast<evidence::Bound>(i)), retimed.path[i]);
  }
  w.end();
}

void write_what_if(JsonWriter& w, const verdict::WhatIfAnswer& what_if) {
  w.begin_object("whatif", kBlock);
  texts(w, "changes", what_if.changes);
  write_gain(w, what_if.gain);
  write_path(w, "critical_path_ns_now", what_if.now);
  write_path(w, "critical_path_ns_after", what_if.after);
  w.end();
}

}  // namespace

std::string render_json(const Answer& answer, std::optional<Table> table,
                        const JsonLimits& limits) {
  JsonWriter w(limits.text);
  begin_document(w, answer.fleet ? "fleet" : "");
  if (answer.fleet) write_fleet(w, *answer.fleet);
  write_input(w, answer);
  write_quality(w, answer);
  write_device(w, answer);
  write_model(w, answer);
  write_steps(w, answer);
  write_layers(w, answer);
  write_budget(w, answer.usable() ? answer.evidence->budget : std::vector<evidence::BudgetRow>());
  write_kernels(w, answer, limits.kernels);
  write_verdict(w, answer, limits);
  write_floor(w, answer.usable() ? answer.floor : nullptr);
  write_retiming(w, answer);
  write_ranks(w, answer);
  const std::span<const evidence::Fact> facts =
      answer.usable() ? answer.evidence->facts : std::span<const evidence::Fact>();
  write_facts(w, facts.first(std::min(facts.size(), limits.facts)));
  if (answer.what_if != nullptr) write_what_if(w, *answer.what_if);
  if (answer.explanation != nullptr) write_explanation(w, answer);
  if (table) write_table_json(w, *table, answer);
  w.end();
  return w.take();
}

}  // namespace culprit::report
