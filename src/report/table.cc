#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/views.h"

namespace culprit::report {
namespace {

using enum CellKind;

constexpr std::string_view kMore = "more: --all";

Cell optional_cell(const std::optional<std::int64_t>& value) {
  return value ? Cell(*value) : Cell();
}

Cell optional_cell(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

Cell text_cell(std::string_view text) { return text.empty() ? Cell() : Cell(std::string(text)); }

std::string grid_text(const store::Dim3& grid) {
  if (grid == store::Dim3{}) return {};
  if (grid[1] == 1 && grid[2] == 1) return text::count(grid[0]);
  return fmt::format("{}x{}x{}", grid[0], grid[1], grid[2]);
}

Grid steps_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"step", "index", kCount},
                  {"kind", "kind"},
                  {"batch", "batch", kCount},
                  {"tokens", "tokens", kCount, false, 100},
                  {"begins", "begin_ns", kTime, false, 60},
                  {"length", "ns", kTime},
                  {"activities", "activities", kCount, false, 90},
                  {"used", "used"},
                  {"mark", "mark", kText, false, 70}};
  std::int64_t index = 0;
  for (const run::Step& step : run.steps) {
    const bool main = step.kind == run.kind;
    grid.rows.push_back({main ? Cell(index++) : Cell(), std::string(run::step_kind_name(step.kind)),
                         optional_cell(step.batch), optional_cell(step.tokens),
                         step.begin - run.device_span.begin, step.length(), step.last - step.first,
                         step.used ? "yes" : "no: " + step.why_excluded, text_cell(step.mark)});
  }
  grid.rest_label = kMore;
  return grid;
}

constexpr std::string_view kNoneRecorded = "(none recorded)";
constexpr std::string_view kNotInReplay = "(not recorded in replay)";

std::string_view none_recorded(const run::Activity& activity) {
  return activity.in_graph ? kNotInReplay : kNoneRecorded;
}

Cell source_cell(const evidence::KernelFigures& kernel) {
  if (kernel.source) return short_place_of(*kernel.source);
  return kernel.in_replay ? Cell(std::string(kNotInReplay)) : Cell();
}

Grid kernels_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"per step", "ns_per_step", kTime, true},
                  {"share", "share", kShare, true},
                  {"calls", "calls_per_step", kNumber, true},
                  {"each", "avg_ns", kTime, false, 60},
                  {"GB/s", "gbps", kNumber, false, 100},
                  {"of peak", "of_peak", kShare, false, 70},
                  {"grid", "grid", kText, false, 130},
                  {"kind", "kind", kText, false, 90},
                  {"kernel", "kernel"},
                  {"source", "", kText, false, 120},
                  {"", "source", kText, false, kJsonOnly}};
  grid.label_column = 8;
  for (const evidence::KernelFigures& kernel : answer.evidence->kernels) {
    const run::Group& group = group_of(run, kernel);
    grid.rows.push_back({kernel.ns_per_step, kernel.share, kernel.calls_per_step, kernel.avg_ns,
                         kernel.gbps ? Cell(std::round(*kernel.gbps)) : Cell(),
                         optional_cell(kernel.of_peak), text_cell(grid_text(group.grid)),
                         std::string(known::owner_name(group.kind)),
                         std::string(short_name(run, kernel)), source_cell(kernel),
                         kernel.source ? Cell(short_place_of(*kernel.source)) : Cell()});
  }
  grid.rest_label = kMore;
  grid.total_label = "all kernels";
  return grid;
}

// Where in the model a kernel runs, told by its calls per step alone.
std::string layer_role(double calls, std::int64_t layers, std::optional<std::int64_t> first_dense) {
  const double per_layer = calls / static_cast<double>(layers);
  if (per_layer >= 1) return "every layer";
  if (first_dense && calls == static_cast<double>(*first_dense)) return "dense layers";
  if (per_layer >= 0.5) {
    return fmt::format("{} of {} layers", std::llround(calls), layers);
  }
  return "outside";
}

Grid layers_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"where", "where"},
                  {"per layer", "ns_per_layer", kTime},
                  {"per step", "ns_per_step", kTime, true},
                  {"calls/layer", "calls_per_layer", kNumber, false, 60},
                  {"calls/step", "calls_per_step", kNumber, false, 90},
                  {"kind", "kind", kText, false, 70},
                  {"kernel", "kernel"}};
  grid.label_column = 6;
  const run::Layers& layers = run.layers;
  if (!layers.count || *layers.count <= 0) {
    grid.caption = "The number of layers is not known: no count of calls per step tells it.";
    return grid;
  }
  grid.caption = fmt::format("{} layers (told by {})", *layers.count, layers.how);
  if (layers.first_dense) grid.caption += fmt::format(", the first {} dense", *layers.first_dense);
  if (!layers.ns.empty()) {
    const auto [low, high] = std::minmax_element(layers.ns.begin(), layers.ns.end());
    grid.caption += fmt::format("; index inferred from the order of kernels: {} to {} each",
                                text::duration(*low, false), text::duration(*high, false));
  }
  for (const evidence::KernelFigures& kernel : answer.evidence->kernels) {
    const std::string role = layer_role(kernel.calls_per_step, *layers.count, layers.first_dense);
    const bool inside = role != "outside";
    grid.rows.push_back(
        {role, inside ? Cell(kernel.ns_per_step / *layers.count) : Cell(), kernel.ns_per_step,
         inside ? Cell(kernel.calls_per_step / static_cast<double>(*layers.count)) : Cell(),
         kernel.calls_per_step, std::string(known::owner_name(group_of(run, kernel).kind)),
         std::string(short_name(run, kernel))});
  }
  grid.rest_label = kMore;
  grid.total_label = "all kernels";
  return grid;
}

// Device time of the used steps, summed by some key of the activities.
struct Tally {
  Nanos ns = 0;
  std::int64_t calls = 0;
};

template <class Key, class KeyOf>
std::vector<std::pair<Key, Tally>> tally_used(const run::Run& run, KeyOf&& key_of) {
  std::map<Key, Tally> sums;
  for (const run::Activity& activity : run.activities) {
    if (activity.step < 0 || !run.steps[static_cast<std::size_t>(activity.step)].used) continue;
    Tally& tally = sums[key_of(activity)];
    tally.ns += activity.end - activity.begin;
    ++tally.calls;
  }
  std::vector<std::pair<Key, Tally>> out(sums.begin(), sums.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  return out;
}

struct PerStep {
  Nanos ns = 0;
  double share = 0, calls = 0;
};

PerStep per_step(const Answer& answer, const Tally& tally) {
  const evidence::StepStats& steps = answer.evidence->steps;
  if (steps.used <= 0) return {};
  const Nanos mean = (tally.ns + steps.used / 2) / steps.used;
  return {mean, steps.mean > 0 ? static_cast<double>(mean) / static_cast<double>(steps.mean) : 0,
          static_cast<double>(tally.calls) / static_cast<double>(steps.used)};
}

Grid ops_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"per step", "ns_per_step", kTime, true},
                  {"share", "share", kShare, true},
                  {"kernels", "kernels_per_step", kNumber, true},
                  {"operator", "op"}};
  grid.label_column = 3;
  const auto by_op = tally_used<std::string_view>(run, [&run](const run::Activity& activity) {
    const run::Origin origin = run::origin_of(run, activity);
    return origin.op.valid() ? run::op_name(origin) : none_recorded(activity);
  });
  for (const auto& [op, tally] : by_op) {
    const PerStep figures = per_step(answer, tally);
    grid.rows.push_back({figures.ns, figures.share, figures.calls, std::string(op)});
  }
  grid.rest_label = kMore;
  grid.total_label = "all operators";
  return grid;
}

Grid sources_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"per step", "ns_per_step", kTime, true},
                  {"share", "share", kShare, true},
                  {"kernels", "kernels_per_step", kNumber, true, 60},
                  {"line", "line_kind", kText, false, 70},
                  {"via", "via", kText, false, 90},
                  {"source", ""},
                  {"", "file", kText, false, kJsonOnly},
                  {"", "line", kCount, false, kJsonOnly},
                  {"", "function", kText, false, kJsonOnly}};
  grid.label_column = 5;
  using Key = std::tuple<std::string, std::int64_t, std::string, bool, std::string, bool>;
  const auto by_source = tally_used<Key>(run, [&run](const run::Activity& activity) {
    const run::Origin origin = run::origin_of(run, activity);
    const auto source = run::source_of(*origin.run, origin.call).value_or(run::Source{});
    const bool replay = source.file.empty() && activity.in_graph;
    return Key{source.file, source.line, source.function, source.exact, source.via, replay};
  });
  for (const auto& [key, tally] : by_source) {
    const PerStep figures = per_step(answer, tally);
    const auto& [file, line, function, exact, via, replay] = key;
    const bool known = !file.empty();
    const std::string place = short_place_of({file, line, function, exact, via});
    grid.rows.push_back({figures.ns, figures.share, figures.calls,
                         known ? Cell(exact ? "exact" : "function") : Cell(), text_cell(via),
                         known ? place : std::string(replay ? kNotInReplay : kNoneRecorded),
                         text_cell(file), known ? Cell(line) : Cell(), text_cell(function)});
  }
  grid.rest_label = kMore;
  grid.total_label = "all sources";
  return grid;
}

Grid gaps_grid(const Answer& answer) {
  const run::Run& run = *answer.run;
  Grid grid;
  grid.columns = {{"length", "ns", kTime, true},
                  {"owner", "owner"},
                  {"step", "step", kCount},
                  {"into step", "into_step_ns", kTime, false, 60},
                  {"after", "after", kText, false, 90},
                  {"ended by", "ended_by"},
                  {"call", "call", kText, false, 70}};
  grid.label_column = 1;
  std::vector<const evidence::Gap*> gaps;
  for (const evidence::Gap& gap : answer.evidence->gaps) gaps.push_back(&gap);
  std::stable_sort(gaps.begin(), gaps.end(), [](const auto* a, const auto* b) {
    return a->end - a->begin > b->end - b->begin;
  });
  const auto name_of = [&run](run::ActivityId id) {
    if (!id.valid()) return Cell();
    const run::Group& group = run.groups[run.activities[id.index].group.index];
    return text_cell(group.info.short_name.empty() ? text_of(run, group.name)
                                                   : std::string_view(group.info.short_name));
  };
  std::map<run::StepIndex, std::int64_t> main_index;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (run.steps[i].kind == run.kind) main_index[static_cast<run::StepIndex>(i)] = next++;
  }
  for (const evidence::Gap* gap : gaps) {
    const auto step = main_index.find(gap->step);
    const bool known = step != main_index.end();
    grid.rows.push_back(
        {gap->end - gap->begin, std::string(known::owner_name(gap->owner)),
         known ? Cell(step->second) : Cell(),
         known ? Cell(gap->begin - run.steps[static_cast<std::size_t>(gap->step)].begin) : Cell(),
         name_of(gap->before), name_of(gap->after),
         gap->call.valid() ? text_cell(text_of(run, run.trace->calls.name[gap->call.index]))
                           : Cell()});
  }
  grid.rest_label = kMore;
  grid.total_label = "all gaps";
  return grid;
}

}  // namespace

std::string place_of(const run::Source& source) {
  return fmt::format("{}:{}{}{}", source.file, source.line, source.function.empty() ? "" : " ",
                     source.function);
}

std::string short_place_of(const run::Source& source) {
  run::Source shorter = source;
  const std::size_t name = source.file.rfind('/');
  if (name != std::string::npos && name > 0) {
    const std::size_t folder = source.file.rfind('/', name - 1);
    if (folder != std::string::npos) shorter.file = source.file.substr(folder + 1);
  }
  return place_of(shorter);
}

Grid budget_grid(const Answer& answer) {
  Grid grid;
  grid.columns = {{"where a step goes", "owner"},
                  {"per step", "ns_per_step", kTime, true},
                  {"share", "share", kShare, true},
                  {"calls", "calls_per_step", kNumber},
                  {"", "", kBar}};
  for (const evidence::BudgetRow& row : answer.evidence->budget) {
    grid.rows.push_back({std::string(known::owner_name(row.owner)), row.ns_per_step, row.share,
                         row.calls_per_step > 0 ? Cell(row.calls_per_step) : Cell(), row.share});
  }
  grid.rest_label = "smaller owners";
  grid.total_label = "total = step";
  return grid;
}

std::string_view table_name(Table table) {
  constexpr std::string_view kNames[] = {"steps",   "budget", "kernels", "layers", "ops",
                                         "sources", "gaps",   "comm",    "memory"};
  return kNames[static_cast<std::size_t>(table)];
}

Grid make_table(const Answer& answer, Table table) {
  switch (table) {
    case Table::kSteps:
      return steps_grid(answer);
    case Table::kBudget:
      return budget_grid(answer);
    case Table::kKernels:
      return kernels_grid(answer);
    case Table::kLayers:
      return layers_grid(answer);
    case Table::kOps:
      return ops_grid(answer);
    case Table::kSources:
      return sources_grid(answer);
    case Table::kGaps:
      return gaps_grid(answer);
    case Table::kComm:
      return comm_grid(answer);
    case Table::kMemory:
      return memory_grid(answer);
  }
  return {};
}

std::string render_table(const Answer& answer, Table table, const TextOptions& options) {
  if (!answer.usable()) return {};
  std::string out;
  for (const std::string& line : grid_lines(make_table(answer, table), options, kRowsShown)) {
    out += line;
    out += '\n';
  }
  return out;
}

void write_table_json(JsonWriter& w, Table table, const Answer& answer) {
  w.begin_object("table", JsonLayout::kBlock);
  w.text("name", table_name(table));
  write_rows(w, "rows", answer.usable() ? make_table(answer, table) : Grid{});
  w.end();
}

}  // namespace culprit::report
