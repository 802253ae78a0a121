// Tables of what was measured.
#include "query/tables.h"
#include "report/views.h"

namespace culprit::query {
namespace {

using enum Type;
using Kind = EventRow::Table;
using evidence::KernelFigures;

const evidence::StepStats& stats(const Source& s) { return s.evidence().steps; }

constexpr Column kSummaryColumns[] = {
    {"path", kText, "of the trace; of several that of the rank shown",
     [](const Source& s, std::size_t, Cell c) { c.text(s.answer().path); }},
    {"format", kText, "kineto-json nsys-sqlite",
     [](const Source& s, std::size_t, Cell c) { c.text(s.trace().info.format); }},
    {"events", kInteger, "read, of every phase",
     [](const Source& s, std::size_t, Cell c) { c.integer(s.trace().info.events); }},
    {"base_ns", kInteger, "what the trace's zero is, where its head tells",
     [](const Source& s, std::size_t, Cell c) { c.positive(s.trace().info.base); }},
    {"device_name", kText, "",
     [](const Source& s, std::size_t, Cell c) { c.copy(report::device_name(s.run())); }},
    {"peak_gbps", kReal, "of its memory",
     [](const Source& s, std::size_t, Cell c) {
       s.evidence().peak.gbps > 0 ? c.real(s.evidence().peak.gbps) : c.null();
     }},
    {"headline", kText, "the verdict in one sentence",
     [](const Source& s, std::size_t, Cell c) { c.text(s.verdict().headline); }},
    {"kind", kText, "of the steps that the figures are about",
     [](const Source& s, std::size_t, Cell c) { c.text(run::step_kind_name(s.run().kind)); }},
    {"how", kText, "marked graph-replay repetition whole-trace",
     [](const Source& s, std::size_t, Cell c) { c.text(run::steps_how_name(s.run().how)); }},
    {"steps_found", kInteger, "of this kind",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).found); }},
    {"steps_used", kInteger, "that count in the means",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).used); }},
    {"mean_ns", kInteger, "of the steps that count",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).mean); }},
    {"median_ns", kInteger, "",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).median); }},
    {"p99_ns", kInteger, "", [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).p99); }},
    {"device_span_ns", kInteger, "first to last device activity of a step, mean",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).device_span); }},
    {"device_busy", kReal, "share of that in which the device works",
     [](const Source& s, std::size_t, Cell c) { c.real(stats(s).device_busy); }},
    {"busy_ns", kInteger, "time in which the device works, overlaps once, mean",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).busy_ns); }},
    {"activity_ns", kInteger, "sum of durations on the device, mean",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).activity_ns); }},
    {"host_ns", kInteger, "of a step on the launching thread, mean",
     [](const Source& s, std::size_t, Cell c) { c.positive(stats(s).host_ns); }},
    {"host_wait_ns", kInteger, "time it sat in calls that wait, mean",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).host_wait_ns); }},
    {"tokens", kInteger, "rows that the model's layers work on",
     [](const Source& s, std::size_t, Cell c) { c.integer(stats(s).tokens); }},
    {"layers", kInteger, "of the model",
     [](const Source& s, std::size_t, Cell c) { c.integer(s.run().layers.count); }},
};

const evidence::BudgetRow& budget(const Source& s, std::size_t row) {
  return s.evidence().budget[row];
}

constexpr Column kBudgetColumns[] = {
    {"owner", kText, "a kind of work, a reason for idling, or unexplained",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(known::owner_name(budget(s, row).owner));
     }},
    {"ns_per_step", kInteger, "mean over the steps that count",
     [](const Source& s, std::size_t row, Cell c) { c.integer(budget(s, row).ns_per_step); }},
    {"share", kReal, "of the step",
     [](const Source& s, std::size_t row, Cell c) { c.real(budget(s, row).share); }},
    {"calls_per_step", kReal, "0 of idle time",
     [](const Source& s, std::size_t row, Cell c) { c.real(budget(s, row).calls_per_step); }},
};

const KernelFigures& kernel(const Source& s, std::size_t row) { return s.evidence().kernels[row]; }
const run::Group& group(const Source& s, std::size_t row) {
  return report::group_of(s.run(), kernel(s, row));
}

void put_dim(const store::Dim3& dim, std::size_t axis, Cell c) {
  dim == store::Dim3{} ? c.null() : c.integer(std::int64_t{dim[axis]});
}

constexpr Column kKernelColumns[] = {
    {"kernel", kInteger, "place in the answer's list, most time first, from 0",
     [](const Source&, std::size_t row, Cell c) { c.integer(static_cast<std::int64_t>(row)); }},
    {"name", kText, "in full",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(report::full_name(s.run(), kernel(s, row)));
     }},
    {"short_name", kText, "decoded",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(report::short_name(s.run(), kernel(s, row)));
     }},
    {"owner", kText, "in the budget",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(known::owner_name(group(s, row).kind));
     }},
    {"calls", kInteger, "in all steps that count",
     [](const Source& s, std::size_t row, Cell c) { c.integer(kernel(s, row).calls); }},
    {"calls_per_step", kReal, "",
     [](const Source& s, std::size_t row, Cell c) { c.real(kernel(s, row).calls_per_step); }},
    {"ns_per_step", kInteger, "sum of durations, mean",
     [](const Source& s, std::size_t row, Cell c) { c.integer(kernel(s, row).ns_per_step); }},
    {"share", kReal, "of the step",
     [](const Source& s, std::size_t row, Cell c) { c.real(kernel(s, row).share); }},
    {"avg_ns", kInteger, "of a call",
     [](const Source& s, std::size_t row, Cell c) { c.integer(kernel(s, row).avg_ns); }},
    {"exposed_ns_per_step", kInteger, "in which nothing else ran, mean",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(kernel(s, row).exposed_ns_per_step);
     }},
    {"grid_x", kInteger, "blocks",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).grid, 0, c); }},
    {"grid_y", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).grid, 1, c); }},
    {"grid_z", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).grid, 2, c); }},
    {"block_x", kInteger, "threads of a block",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).block, 0, c); }},
    {"block_y", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).block, 1, c); }},
    {"block_z", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { put_dim(group(s, row).block, 2, c); }},
    {"blocks", kInteger, "of the whole grid",
     [](const Source& s, std::size_t row, Cell c) { c.positive(group(s, row).blocks()); }},
    {"elements_min", kInteger, "written by a call, at least",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& elements = kernel(s, row).elements;
       elements ? c.integer(elements->min) : c.null();
     }},
    {"elements_max", kInteger, "at most",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& elements = kernel(s, row).elements;
       elements ? c.integer(elements->max) : c.null();
     }},
    {"elements", kInteger, "where they are known exactly",
     [](const Source& s, std::size_t row, Cell c) { c.integer(kernel(s, row).elements_exact); }},
    {"dtype_in", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       const known::Dtype dtype = kernel(s, row).dtype_in;
       dtype == known::Dtype::kUnknown ? c.null() : c.text(known::dtype_name(dtype));
     }},
    {"dtype_out", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       const known::Dtype dtype = kernel(s, row).dtype_out;
       dtype == known::Dtype::kUnknown ? c.null() : c.text(known::dtype_name(dtype));
     }},
    {"bytes", kInteger, "read and written by a call",
     [](const Source& s, std::size_t row, Cell c) { c.integer(kernel(s, row).bytes); }},
    {"gbps", kReal, "bytes / avg_ns",
     [](const Source& s, std::size_t row, Cell c) { c.real(kernel(s, row).gbps); }},
    {"of_peak", kReal, "of the roof that binds it, 0 to 1",
     [](const Source& s, std::size_t row, Cell c) { c.real(kernel(s, row).of_peak); }},
    {"regime", kText, "memory compute latency communication unknown",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(evidence::regime_name(kernel(s, row).regime));
     }},
    {"doubt", kText, "why a figure is withheld, or may be wrong",
     [](const Source& s, std::size_t row, Cell c) { c.text(kernel(s, row).doubt); }},
    {"op", kText, "the operator of most calls",
     [](const Source& s, std::size_t row, Cell c) { c.text(kernel(s, row).op); }},
    {"api", kText, "the call that launches it",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(report::text_of(s.run(), kernel(s, row).api));
     }},
    {"file", kText, "the line that launches it",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& source = kernel(s, row).source;
       source ? c.text(source->file) : c.null();
     }},
    {"line", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& source = kernel(s, row).source;
       source ? c.integer(source->line) : c.null();
     }},
    {"function", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       const auto& source = kernel(s, row).source;
       source ? c.text(source->function) : c.null();
     }},
};

Rows kernel_numbered(const Source& s, sqlite3_value* value) {
  const std::int64_t row = sqlite3_value_int64(value);
  if (row < 0 || static_cast<std::size_t>(row) >= s.evidence().kernels.size()) return {};
  return {static_cast<std::size_t>(row), static_cast<std::size_t>(row) + 1};
}
constexpr Key kKernelKeys[] = {{"kernel", 1, kernel_numbered}};

const evidence::Gap& gap(const Source& s, std::size_t row) { return s.evidence().gaps[row]; }

constexpr Column kGapColumns[] = {
    {"begin_ns", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(gap(s, row).begin); }},
    {"end_ns", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(gap(s, row).end); }},
    {"dur_ns", kInteger, "end_ns - begin_ns",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(gap(s, row).end - gap(s, row).begin);
     }},
    {"owner", kText, "why, as in the budget",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(known::owner_name(gap(s, row).owner));
     }},
    {"step", kInteger, "steps.step",
     [](const Source& s, std::size_t row, Cell c) { c.known(gap(s, row).step); }},
    {"before", kInteger, "activities.activity that ran last",
     [](const Source& s, std::size_t row, Cell c) {
       const run::ActivityId id = gap(s, row).before;
       id.valid() ? c.integer(std::int64_t{id.index}) : c.null();
     }},
    {"after", kInteger, "activities.activity that ended it",
     [](const Source& s, std::size_t row, Cell c) {
       const run::ActivityId id = gap(s, row).after;
       id.valid() ? c.integer(std::int64_t{id.index}) : c.null();
     }},
    {"call", kInteger, "events.id of the launch of that, or of the wait that held the host",
     [](const Source& s, std::size_t row, Cell c) {
       const store::CallRow call = gap(s, row).call;
       call.valid() ? c.integer(s.id_of(Kind::kCalls, call.index)) : c.null();
     }},
};

}  // namespace

const Table kSummary{"summary",
                     "One row: the trace, its steps and the verdict in figures.",
                     Needs::kVerdict,
                     kSummaryColumns,
                     [](const Source&) { return std::size_t{1}; },
                     {},
                     1};

const Table kBudget{"budget",
                    "Where a step goes: the rows add up to summary.mean_ns exactly.",
                    Needs::kVerdict,
                    kBudgetColumns,
                    [](const Source& s) { return s.evidence().budget.size(); },
                    {},
                    20};

const Table kKernels{
    "kernels",
    "Kernels, copies and sets of one name and launch geometry, over the steps that "
    "count.",
    Needs::kVerdict,
    kKernelColumns,
    [](const Source& s) { return s.evidence().kernels.size(); },
    kKernelKeys,
    200};

const Table kGaps{
    "gaps",      "Idle time of the device in the steps that count.",       Needs::kVerdict,
    kGapColumns, [](const Source& s) { return s.evidence().gaps.size(); }, {},
    10'000};

}  // namespace culprit::query
