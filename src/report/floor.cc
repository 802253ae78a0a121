// The answer of `culprit floor` as text: what a step takes at least, by component, and with a trace
// how far from it each part of the step is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/grid.h"
#include "report/page.h"

namespace culprit::report {
namespace {

using evidence::StepFloor;

constexpr double kMega = 1e6, kGiga = 1e9;

std::string deployment_text(const StepFloor& answer) {
  const known::Deployment& deployment = answer.given.deployment;
  std::string out = fmt::format("{} on {}{}", answer.given.model.name,
                                deployment.tp > 1 ? fmt::format("{} x ", deployment.tp) : "",
                                answer.given.gpu.name);
  if (deployment.tp > 1) out += fmt::format(", TP {}", deployment.tp);
  if (deployment.attention_dp > 1) out += fmt::format(", attention DP {}", deployment.attention_dp);
  if (deployment.ep > 1) out += fmt::format(", EP {}", deployment.ep);
  out += fmt::format(": batch {}", text::count(deployment.batch.value_or(1)));
  if (answer.given.context) {
    out += fmt::format(", {} tokens of context each, KV {}", text::count(*answer.given.context),
                       known::dtype_name(answer.floor.kv_dtype));
  }
  return out;
}

double tokens_per_s(const StepFloor& answer, Nanos step) {
  const auto batch = static_cast<double>(answer.given.deployment.batch.value_or(1));
  return step > 0 ? batch * 1e9 / static_cast<double>(step) : 0;
}

std::string headline(const Page& page, const StepFloor& answer) {
  std::string out =
      fmt::format("at least {} per step, {} tokens/s at most", page.duration(answer.floor.step),
                  text::number(tokens_per_s(answer, answer.floor.step)));
  if (answer.measured <= 0) return out;
  const double times = static_cast<double>(answer.measured) /
                       static_cast<double>(std::max<Nanos>(1, answer.floor.step));
  return out + fmt::format("; measured {}, {} times the floor", page.duration(answer.measured),
                           text::number(times));
}

Grid components(const StepFloor& answer) {
  constexpr int kWide = 110;
  Grid grid;
  grid.columns = {{"component", "", CellKind::kText},
                  {"floor", "", CellKind::kTime, true},
                  {"share", "", CellKind::kShare, true},
                  {"MB", "", CellKind::kNumber},
                  {"GFLOP", "", CellKind::kNumber},
                  {"bound", "", CellKind::kText},
                  {"counted", "", CellKind::kText, false, kWide}};
  grid.total_label = "one GPU, one step";
  const auto step = static_cast<double>(std::max<Nanos>(1, answer.floor.step));
  for (const known::FloorPart& part : answer.floor.parts) {
    const auto some = [](double x) { return x > 0 ? Cell(x) : Cell(std::string()); };
    grid.rows.push_back({std::string(known::component_name(part.component)), part.ns,
                         static_cast<double>(part.ns) / step, some(part.bytes / kMega),
                         some(part.flops / kGiga), std::string(known::bound_name(part.bound)),
                         part.how});
  }
  return grid;
}

// The largest ones; the document has them all.
std::string owner_names(const std::vector<known::Owner>& owners, std::size_t at_most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(at_most, owners.size()); ++i) {
    out += (out.empty() ? "" : ", ") + std::string(known::owner_name(owners[i]));
  }
  const std::size_t rest = owners.size() - std::min(at_most, owners.size());
  return rest == 0 ? out : out + fmt::format(", {} more", rest);
}

Grid distance_grid(const StepFloor& answer) {
  constexpr std::size_t kOwners = 2;
  Grid grid;
  grid.columns = {
      {"part of the step", "", CellKind::kText}, {"floor", "", CellKind::kTime, true},
      {"measured", "", CellKind::kTime, true},   {"above it", "", CellKind::kTime, true},
      {"times", "", CellKind::kNumber},          {"in the budget", "", CellKind::kText}};
  grid.total_label = "step";
  for (const evidence::Distance& row : answer.distance) {
    const bool both = row.floor > 0 && row.measured > 0;
    grid.rows.push_back(
        {row.name, row.floor, row.measured, row.measured - row.floor,
         both ? Cell(static_cast<double>(row.measured) / static_cast<double>(row.floor))
              : Cell(std::string()),
         row.measured > 0 ? owner_names(row.owners, kOwners) : std::string("not in the trace")});
  }
  return grid;
}

std::string component_names(const evidence::Distance& row) {
  std::string out;
  for (std::size_t i = 0; i < row.components.size(); ++i) {
    out += (i == 0                           ? ""
            : i + 1 == row.components.size() ? " and "
                                             : ", ") +
           std::string(known::component_name(row.components[i]));
  }
  return out;
}

void add_distance(Page& page, const StepFloor& answer) {
  if (answer.distance.empty()) return;
  page.blank();
  const Grid grid = distance_grid(answer);
  page.lines(grid_lines(grid, page.options(), static_cast<int>(grid.rows.size())));
  page.title("not told apart");
  for (const evidence::Distance& row : answer.distance) {
    if (row.together.empty()) continue;
    page.paragraph(fmt::format("{}: {}; {}", row.name, component_names(row), row.together), 2, 4);
  }
}

void add_memory(Page& page, const StepFloor& answer) {
  const known::Floor& floor = answer.floor;
  const auto size = [](double bytes) { return text::bytes(std::llround(std::min(bytes, 1e18))); };
  page.blank();
  page.paragraph(
      fmt::format("weights read per step: {} on each GPU, {} over all weights once; {} "
                  "held on each GPU",
                  size(floor.weight_bytes), size(floor.weight_bytes_once), size(floor.held_bytes)),
      0, 2);
  if (!floor.pool_bytes) return;
  const Nanos whole = std::llround(std::min(1e17, *floor.pool_bytes / answer.given.gpu.peak_gbps));
  page.paragraph(fmt::format("KV pool: {} on each GPU; a step that reads all of it pays {} more",
                             size(*floor.pool_bytes), page.duration(whole)),
                 0, 2);
}

}  // namespace

std::string render_floor(const StepFloor& answer, const TextOptions& options) {
  Page page(options);
  page.paragraph(deployment_text(answer), 0, 2);
  page.paragraph(headline(page, answer), 0, 2, Ink::kBold);
  page.blank();
  const Grid grid = components(answer);
  page.lines(grid_lines(grid, options, static_cast<int>(grid.rows.size())));
  add_distance(page, answer);
  add_memory(page, answer);
  page.title("rests on");
  page.paragraph(fmt::format("peaks of {}: {} GB/s; operations one after another, nothing hidden",
                             answer.given.gpu.name, text::number(answer.given.gpu.peak_gbps)),
                 2, 4);
  for (const std::string& note : answer.floor.notes) page.paragraph(note, 2, 4, Ink::kYellow);
  page.paragraph(
      "not counted: norms, biases, activations (they fit the cache), sampling, drafts, the host", 2,
      4);
  return page.take();
}

}  // namespace culprit::report
