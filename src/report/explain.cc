// The answer of `culprit explain`: one block per kernel, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "report/explain.h"
#include "report/grid.h"
#include "report/page.h"
#include "report/views.h"

namespace culprit::report {
namespace {

using enum JsonLayout;
using verdict::Explained;
using verdict::HeldTensor;
using verdict::Parent;

std::string dim_text(const store::Dim3& dim) {
  return fmt::format("{} x {} x {}", dim[0], dim[1], dim[2]);
}

std::string launch_text(const run::Group& group) {
  if (group.grid == store::Dim3{}) return "grid and block not recorded";
  return fmt::format("grid {} ({} blocks) of {} threads", dim_text(group.grid),
                     text::count(group.blocks()), dim_text(group.block));
}

std::string calls_text(const Page& page, const Explained& explained,
                       const evidence::KernelFigures& kernel) {
  return fmt::format("{} a step, {} each ({} to {}, median {}): {} per step, {} of it exposed",
                     text::amount(kernel.calls_per_step), page.duration(kernel.avg_ns),
                     page.duration(explained.fastest), page.duration(explained.slowest),
                     page.duration(explained.median), page.duration(kernel.ns_per_step),
                     page.duration(kernel.exposed_ns_per_step));
}

std::string type_text(const evidence::KernelFigures& kernel) {
  if (kernel.dtype_in == known::Dtype::kUnknown && kernel.dtype_out == known::Dtype::kUnknown) {
    return {};
  }
  std::string out = fmt::format("{} to {}", known::dtype_name(kernel.dtype_in),
                                known::dtype_name(kernel.dtype_out));
  if (!kernel.dtype_in_how.empty()) out += fmt::format(" (source from: {})", kernel.dtype_in_how);
  return out;
}

std::string elements_text(const evidence::KernelFigures& kernel) {
  if (kernel.matmul) {
    const evidence::Matmul& m = *kernel.matmul;
    return fmt::format("{}[{}, {}] x [{}, {}], from dims",
                       m.batch > 1 ? fmt::format("{} of ", m.batch) : "", m.m, m.k, m.k, m.n);
  }
  if (!kernel.elements) return "not known: neither shapes nor a launch rule for this kernel";
  if (kernel.elements_exact) {
    return fmt::format("{} a call, exact (from {})", text::count(*kernel.elements_exact),
                       kernel.elements_how);
  }
  return fmt::format("{} to {} a call (from {})", text::count(kernel.elements->min),
                     text::count(kernel.elements->max), kernel.elements_how);
}

std::string bytes_text(const evidence::KernelFigures& kernel) {
  if (!kernel.bytes) return {};
  std::string out = fmt::format("{} read and written a call", text::bytes(*kernel.bytes));
  if (kernel.gbps) out += fmt::format(": {} GB/s", text::number(*kernel.gbps));
  if (kernel.of_peak) out += fmt::format(", {} of the roof", text::percent(*kernel.of_peak));
  if (kernel.regime != evidence::Regime::kUnknown) {
    out += fmt::format("; bound by {}", evidence::regime_name(kernel.regime));
  }
  return out;
}

void add_parents(Page& page, std::string_view label, const std::vector<Parent>& parents,
                 std::int64_t steps) {
  const std::size_t shown =
      page.options().all ? parents.size() : std::min<std::size_t>(4, parents.size());
  const auto used = static_cast<double>(std::max<std::int64_t>(1, steps));
  for (std::size_t i = 0; i < shown; ++i) {
    page.labelled(i == 0 ? label : "",
                  fmt::format("{} ({} a step, {})", parents[i].what,
                              text::amount(static_cast<double>(parents[i].calls) / used),
                              page.duration(parents[i].ns / std::max<std::int64_t>(1, steps))));
  }
  if (shown < parents.size()) {
    page.labelled("", fmt::format("{} more: --all", parents.size() - shown));
  }
}

Grid tensor_grid(const Explained& explained) {
  Grid grid;
  grid.columns = {{"fits", "fits"},
                  {"tensor", "name"},
                  {"shape on one rank", "shape", CellKind::kText, false, 70},
                  {"type", "dtype"},
                  {"elements", "elements", CellKind::kCount},
                  {"copies", "per_rank", CellKind::kCount, false, 100},
                  {"because", "because", CellKind::kText, false, 120}};
  grid.label_column = 1;
  for (const HeldTensor& held : explained.tensors) {
    grid.rows.push_back({std::string(held.fits ? "yes" : "no"), held.tensor.name,
                         shape_text(held.tensor.shape),
                         std::string(known::dtype_name(held.tensor.dtype)), held.tensor.elements,
                         held.tensor.per_rank, held.because});
  }
  grid.rest_label = "more tensors, further away in size";
  return grid;
}

void add_kernel(Page& page, const Answer& answer, const Explained& explained) {
  const evidence::KernelFigures& kernel = answer.evidence->kernels[explained.kernel];
  const run::Group& group = group_of(*answer.run, kernel);
  page.title(short_name(*answer.run, kernel));
  page.labelled("name", full_name(*answer.run, kernel));
  page.labelled("kind", known::owner_name(group.kind));
  page.labelled("calls", calls_text(page, explained, kernel));
  page.labelled("launch", launch_text(group));
  page.labelled("elements", elements_text(kernel));
  page.labelled("types", type_text(kernel));
  page.labelled("bytes", bytes_text(kernel));
  page.labelled("doubt", kernel.doubt);
  add_parents(page, "ops", explained.ops, answer.evidence->steps.used);
  add_parents(page, "lines", explained.sources, answer.evidence->steps.used);
  add_parents(page, "launched", explained.launches, answer.evidence->steps.used);
  page.labelled("suspect", fmt::format("{}", fmt::join(explained.accused_of, ", ")));
  page.blank();
  if (explained.tensors.empty()) {
    page.paragraph(
        answer.evidence->known.model
            ? "The model's tensors cannot be held against it: its elements are not known."
            : "--model CONFIG holds every tensor of the model against it.",
        3, 3);
  } else {
    constexpr int kTensorsShown = 12;
    page.lines(grid_lines(tensor_grid(explained), page.options(), kTensorsShown));
  }
}

void write_parents(JsonWriter& w, std::string_view key, const std::vector<Parent>& parents) {
  w.begin_array(key, kBlock);
  for (const Parent& parent : parents) {
    w.begin_object({}, kLine);
    w.text("what", parent.what);
    w.integer("calls", parent.calls);
    w.integer("ns", parent.ns);
    w.end();
  }
  w.end();
}

}  // namespace

std::string render_explanation(const Answer& answer, const TextOptions& options) {
  if (!answer.usable() || answer.explanation == nullptr) return {};
  const verdict::Explanation& explanation = *answer.explanation;
  Page page(options);
  if (explanation.suspect != nullptr) {
    const auto& suspects = answer.verdict->suspects;
    add_suspect(page, answer, static_cast<std::size_t>(explanation.suspect - suspects.data()));
    page.blank();
  }
  constexpr std::size_t kKernelsShown = 3;
  const std::size_t count = explanation.kernels.size();
  const std::size_t shown = options.all ? count : std::min(kKernelsShown, count);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) page.blank();
    add_kernel(page, answer, explanation.kernels[i]);
  }
  if (shown < count) {
    page.blank();
    page.paragraph(fmt::format("{} more kernels: --all", count - shown), 0, 0, Ink::kDim);
  }
  return page.take();
}

void write_explanation(JsonWriter& w, const Answer& answer) {
  w.begin_object("explain", kBlock);
  const verdict::Explanation& explanation = *answer.explanation;
  w.text_or_null("suspect",
                 explanation.suspect != nullptr ? explanation.suspect->id : std::string());
  w.begin_array("kernels", kBlock);
  for (const Explained& explained : explanation.kernels) {
    w.begin_object({}, kBlock);
    w.integer("kernel", static_cast<std::int64_t>(explained.kernel));
    w.text("name", full_name(*answer.run, answer.evidence->kernels[explained.kernel]));
    w.integer("fastest_ns", explained.fastest);
    w.integer("median_ns", explained.median);
    w.integer("slowest_ns", explained.slowest);
    write_parents(w, "ops", explained.ops);
    write_parents(w, "sources", explained.sources);
    write_parents(w, "launches", explained.launches);
    write_rows(w, "tensors", tensor_grid(explained));
    w.begin_array("accused_of", kLine);
    for (const std::string& id : explained.accused_of) w.text({}, id);
    w.end();
    w.end();
  }
  w.end();
  w.end();
}

}  // namespace culprit::report
