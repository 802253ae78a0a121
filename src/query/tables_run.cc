// Tables of the run: activities with their launches, steps, layers.
#include "query/tables.h"

namespace culprit::query {
namespace {

using enum Type;
using Kind = EventRow::Table;

const run::Activity& activity(const Source& s, std::size_t row) { return s.run().activities[row]; }

std::optional<run::Source> line_of(const Source& s, std::size_t row) {
  const run::Origin origin = run::origin_of(s.run(), activity(s, row));
  return origin.call.valid() ? run::source_of(*origin.run, origin.call) : std::nullopt;
}

constexpr Column kActivityColumns[] = {
    {"activity", kInteger, "in order of begin, from 0",
     [](const Source&, std::size_t row, Cell c) { c.integer(static_cast<std::int64_t>(row)); }},
    {"event", kInteger, "events.id",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(std::int64_t{activity(s, row).row.index});
     }},
    {"name", kText, "of the kernel, copy or set",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(s.trace().strings.or_empty(s.run().groups[activity(s, row).group.index].name));
     }},
    {"owner", kText, "the owner of its time in the budget",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(known::owner_name(activity(s, row).kind));
     }},
    {"begin_ns", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(activity(s, row).begin); }},
    {"end_ns", kInteger, "limited where the recorded end is impossible",
     [](const Source& s, std::size_t row, Cell c) { c.integer(activity(s, row).end); }},
    {"dur_ns", kInteger, "end_ns - begin_ns",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(activity(s, row).end - activity(s, row).begin);
     }},
    {"stream", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) {
       c.known(s.trace().device.stream[activity(s, row).row.index]);
     }},
    {"step", kInteger, "steps.step",
     [](const Source& s, std::size_t row, Cell c) { c.known(activity(s, row).step); }},
    {"kernel", kInteger, "kernels.kernel",
     [](const Source& s, std::size_t row, Cell c) { c.index(s.kernel_of(activity(s, row).group)); },
     Needs::kVerdict},
    {"in_graph", kInteger, "1: of a graph replay",
     [](const Source& s, std::size_t row, Cell c) { c.truth(activity(s, row).in_graph); }},
    {"launch", kInteger, "events.id of the call",
     [](const Source& s, std::size_t row, Cell c) {
       const store::CallRow call = activity(s, row).call;
       call.valid() ? c.integer(s.id_of(Kind::kCalls, call.index)) : c.null();
     }},
    {"op", kInteger, "events.id of the innermost operator around the call",
     [](const Source& s, std::size_t row, Cell c) {
       const store::OpRow op = activity(s, row).op;
       op.valid() ? c.integer(s.id_of(Kind::kOps, op.index)) : c.null();
     }},
    {"op_name", kText, "also of an operator that another trace lends",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(run::op_name(run::origin_of(s.run(), activity(s, row))));
     }},
    {"file", kText, "the line of user code that launched it",
     [](const Source& s, std::size_t row, Cell c) {
       const auto line = line_of(s, row);
       line ? c.copy(line->file) : c.null();
     }},
    {"line", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) {
       const auto line = line_of(s, row);
       line ? c.integer(line->line) : c.null();
     }},
    {"function", kText, "",
     [](const Source& s, std::size_t row, Cell c) {
       const auto line = line_of(s, row);
       line ? c.copy(line->function) : c.null();
     }},
    {"exact", kInteger, "1: the line of the call; 0: the function's first line",
     [](const Source& s, std::size_t row, Cell c) {
       const auto line = line_of(s, row);
       line ? c.truth(line->exact) : c.null();
     }},
    {"delay_ns", kInteger, "from the end of the call to its own begin",
     [](const Source& s, std::size_t row, Cell c) {
       const store::CallRow call = activity(s, row).call;
       if (!call.valid()) return c.null();
       const store::CallTable& calls = s.trace().calls;
       c.integer(activity(s, row).begin - calls.begin[call.index] - calls.dur[call.index]);
     }},
};

Rows activities_of_step(const Source& s, sqlite3_value* value) {
  const std::int64_t step = sqlite3_value_int64(value);
  if (step < 0 || static_cast<std::size_t>(step) >= s.run().steps.size()) return {};
  const run::Step& found = s.run().steps[static_cast<std::size_t>(step)];
  return {static_cast<std::size_t>(found.first), static_cast<std::size_t>(found.last)};
}

Rows activity_numbered(const Source& s, sqlite3_value* value) {
  const std::int64_t row = sqlite3_value_int64(value);
  if (row < 0 || static_cast<std::size_t>(row) >= s.run().activities.size()) return {};
  return {static_cast<std::size_t>(row), static_cast<std::size_t>(row) + 1};
}

Rows activity_of_event(const Source& s, sqlite3_value* value) {
  const std::int64_t id = sqlite3_value_int64(value);
  const auto found = id >= 0 ? s.activity_of(static_cast<std::size_t>(id)) : std::nullopt;
  return found ? Rows{*found, *found + 1} : Rows{};
}

constexpr Key kActivityKeys[] = {{"activity", 1, activity_numbered},
                                 {"event", 1, activity_of_event},
                                 {"step", 10'000, activities_of_step}};

const run::Step& step(const Source& s, std::size_t row) { return s.run().steps[row]; }

constexpr Column kStepColumns[] = {
    {"step", kInteger, "in order of time, from 0, all kinds",
     [](const Source&, std::size_t row, Cell c) { c.integer(static_cast<std::int64_t>(row)); }},
    {"number", kInteger, "among those of the main kind: what --steps takes",
     [](const Source& s, std::size_t row, Cell c) { c.index(s.number_of_step(row)); }},
    {"kind", kText, "decode prefill mixed draft verify training idle unknown",
     [](const Source& s, std::size_t row, Cell c) {
       c.text(run::step_kind_name(step(s, row).kind));
     }},
    {"batch", kInteger, "requests",
     [](const Source& s, std::size_t row, Cell c) { c.integer(step(s, row).batch); }},
    {"tokens", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(step(s, row).tokens); }},
    {"mark", kText, "the name of the range that tells it",
     [](const Source& s, std::size_t row, Cell c) { c.text(step(s, row).mark); }},
    {"begin_ns", kInteger, "first device activity launched under its mark",
     [](const Source& s, std::size_t row, Cell c) { c.integer(step(s, row).begin); }},
    {"end_ns", kInteger, "the same of the next step",
     [](const Source& s, std::size_t row, Cell c) { c.integer(step(s, row).end); }},
    {"dur_ns", kInteger, "end_ns - begin_ns",
     [](const Source& s, std::size_t row, Cell c) { c.integer(step(s, row).length()); }},
    {"activities", kInteger, "that begin in it",
     [](const Source& s, std::size_t row, Cell c) {
       c.integer(step(s, row).last - step(s, row).first);
     }},
    {"used", kInteger, "1: it counts in the means",
     [](const Source& s, std::size_t row, Cell c) { c.truth(step(s, row).used); }},
    {"why_excluded", kText, "partial outlier incomplete other-kind other-batch not-selected",
     [](const Source& s, std::size_t row, Cell c) { c.text(step(s, row).why_excluded); }},
};

const LayerRow& layer(const Source& s, std::size_t row) { return s.layers()[row]; }

constexpr Column kLayerColumns[] = {
    {"step", kInteger, "steps.step",
     [](const Source& s, std::size_t row, Cell c) { c.integer(std::int64_t{layer(s, row).step}); }},
    {"layer", kInteger, "from 0, inferred from the order of kernels",
     [](const Source& s, std::size_t row, Cell c) { c.integer(layer(s, row).layer); }},
    {"begin_ns", kInteger, "on the busiest stream",
     [](const Source& s, std::size_t row, Cell c) { c.integer(layer(s, row).span.begin); }},
    {"end_ns", kInteger, "",
     [](const Source& s, std::size_t row, Cell c) { c.integer(layer(s, row).span.end); }},
    {"dur_ns", kInteger, "end_ns - begin_ns",
     [](const Source& s, std::size_t row, Cell c) { c.integer(layer(s, row).span.length()); }},
    {"how", kText, "order one-kernel",
     [](const Source& s, std::size_t row, Cell c) { c.text(layer(s, row).how); }},
};

}  // namespace

const Table kActivities{"activities",
                        "Kernels, copies and sets of the device that the answer is about, in order "
                        "of time, each with its launch, operator, line of code and step.",
                        Needs::kRun,
                        kActivityColumns,
                        [](const Source& s) { return s.run().activities.size(); },
                        kActivityKeys,
                        300'000};

const Table kSteps{"steps",
                   "Every step found.",
                   Needs::kRun,
                   kStepColumns,
                   [](const Source& s) { return s.run().steps.size(); },
                   {},
                   100};

const Table kLayers{"layers",
                    "Where each layer lies in each step that counts; no rows where the order of "
                    "kernels does not tell.",
                    Needs::kRun,
                    kLayerColumns,
                    [](const Source& s) { return s.layers().size(); },
                    {},
                    1'000};

}  // namespace culprit::query
