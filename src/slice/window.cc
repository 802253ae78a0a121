// Which part of a run to cut out.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/usage.h"
#include "slice/slice.h"

namespace culprit::slice {
namespace {

using run::Run;
using run::Step;

// Indices into run.steps of the steps of the main kind: their places here are what --steps takes.
std::vector<std::size_t> main_steps(const Run& run) {
  std::vector<std::size_t> found;
  for (std::size_t s = 0; s < run.steps.size(); ++s)
    if (run.steps[s].kind == run.kind) found.push_back(s);
  return found;
}

Window window_of(const Run& run, std::size_t first, std::size_t last) {
  return {first, last, {run.steps[first].begin, run.steps[last].end}, {}};
}

// Of the steps that count the one with most of `measure`; ties: the earlier. None counts: the first.
template <class Measure>
std::size_t step_with_most(const Run& run, Measure measure) {
  std::size_t best = 0;
  std::optional<Nanos> most;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    if (!run.steps[s].used) continue;
    const Nanos value = measure(run.steps[s]);
    if (most && value <= *most) continue;
    most = value;
    best = s;
  }
  return best;
}

Nanos time_in(const Run& run, const Step& step, const std::vector<std::uint8_t>& wanted) {
  Nanos sum = 0;
  for (std::int64_t i = step.first; i < step.last; ++i) {
    const run::Activity& a = run.activities[static_cast<std::size_t>(i)];
    if (wanted[a.group.index] != 0) sum += std::min(a.end, step.end) - a.begin;
  }
  return sum;
}

// The longest work of another kind with the step of the main kind behind it.
std::optional<Window> window_of_interference(const Run& run) {
  std::optional<Window> found;
  for (std::size_t s = 0; s + 1 < run.steps.size(); ++s) {
    if (run.steps[s].kind == run.kind || run.steps[s + 1].kind != run.kind) continue;
    const bool longer = !found || run.steps[s].length() > run.steps[found->first].length();
    if (longer) found = window_of(run, s, s + 1);
  }
  return found;
}

}  // namespace

Result<Window> window_of_steps(const Run& run, std::int64_t from, std::int64_t to) {
  const std::vector<std::size_t> steps = main_steps(run);
  const auto count = static_cast<std::int64_t>(steps.size());
  if (from < 0 || from > to || to >= count) {
    const std::string asked =
        from == to ? fmt::format("step {}", from) : fmt::format("steps {} to {}", from, to);
    return usage(
        fmt::format("there is no {}: the trace has {} {} of kind {}, counted from 0", asked, count,
                    count == 1 ? "step" : "steps", run::step_kind_name(run.kind)),
        "`culprit steps TRACE` lists them");
  }
  return window_of(run, steps[static_cast<std::size_t>(from)], steps[static_cast<std::size_t>(to)]);
}

Result<Window> window_of_median(const Run& run) {
  if (run.steps.empty()) return usage("the trace has no step", "`culprit steps TRACE`");
  std::vector<std::size_t> used;
  for (std::size_t s = 0; s < run.steps.size(); ++s)
    if (run.steps[s].used) used.push_back(s);
  if (used.empty()) used.push_back(0);
  const auto middle = used.begin() + static_cast<std::ptrdiff_t>((used.size() - 1) / 2);
  std::nth_element(used.begin(), middle, used.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(run.steps[a].length(), a) < std::pair(run.steps[b].length(), b);
  });
  return window_of(run, *middle, *middle);
}

Result<Window> narrow_to_layer(const Run& run, Window window, std::int64_t layer) {
  if (window.first != window.last)
    return usage("--layer is a part of one step", "give --step N, or no step for the median one");
  const run::LayerSpans layers = run::layer_spans(run, run.steps[window.first]);
  const auto count = static_cast<std::int64_t>(layers.spans.size());
  if (count == 0) {
    return usage("the order of kernels does not tell the layers of this step apart",
                 "cut out the whole step: --step N");
  }
  if (layer < 0 || layer >= count) {
    return usage(fmt::format("there is no layer {}: the step has {}, counted from 0", layer, count),
                 fmt::format("--layer 0 to {}", count - 1));
  }
  window.span = layers.spans[static_cast<std::size_t>(layer)];
  window.layer = layer;
  return window;
}

Result<Window> window_around(const evidence::Evidence& evidence, const verdict::Suspect& suspect) {
  const Run& run = *evidence.run;
  if (suspect.id == "step-stall" && !evidence.outliers.empty()) {
    const auto worst = std::max_element(
        evidence.outliers.begin(), evidence.outliers.end(),
        [](const evidence::Outlier& a, const evidence::Outlier& b) { return a.excess < b.excess; });
    const auto step = static_cast<std::size_t>(worst->step);
    return window_of(run, step, step);
  }
  if (suspect.id == "prefill-interference") {
    if (const auto window = window_of_interference(run)) return *window;
  }
  if (suspect.kernels.empty() || run.steps.empty()) return window_of_median(run);
  std::vector<std::uint8_t> wanted(run.groups.size(), 0);
  for (const std::size_t kernel : suspect.kernels) wanted[evidence.kernels[kernel].group.index] = 1;
  const std::size_t step =
      step_with_most(run, [&](const Step& s) { return time_in(run, s, wanted); });
  return window_of(run, step, step);
}

std::string describe(const Run& run, const Window& window) {
  const std::vector<std::size_t> steps = main_steps(run);
  const auto place = [&](std::size_t step) -> std::string {
    const auto at = std::lower_bound(steps.begin(), steps.end(), step);
    return at != steps.end() && *at == step
               ? std::to_string(at - steps.begin())
               : fmt::format("{} ({})", step, run::step_kind_name(run.steps[step].kind));
  };
  const std::string file = std::filesystem::path(run.trace->info.path).filename().string();
  const std::string of =
      window.first == window.last
          ? fmt::format("step {} of {}", place(window.first), file)
          : fmt::format("steps {} to {} of {}", place(window.first), place(window.last), file);
  return window.layer ? fmt::format("layer {} of {}", *window.layer, of) : of;
}

}  // namespace culprit::slice
