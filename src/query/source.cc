#include "query/source.h"

namespace culprit::query {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

std::optional<std::size_t> entry(const std::vector<std::uint32_t>& table, std::size_t at) {
  if (at >= table.size() || table[at] == kNone) return std::nullopt;
  return table[at];
}

std::vector<LayerRow> layer_rows(const run::Run& run) {
  std::vector<LayerRow> rows;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    if (!run.steps[s].used) continue;
    const run::LayerSpans layers = run::layer_spans(run, run.steps[s]);
    for (std::size_t k = 0; k < layers.spans.size(); ++k)
      rows.push_back({static_cast<run::StepIndex>(s), static_cast<std::int64_t>(k), layers.spans[k],
                      layers.how});
  }
  return rows;
}

}  // namespace

Source::Source(const store::Trace& trace, const report::Answer& answer)
    : trace_(trace), answer_(answer) {
  const std::array<std::size_t, 6> sizes{trace.device.size(), trace.calls.size(),
                                         trace.ops.size(),    trace.frames.size(),
                                         trace.marks.size(),  trace.syncs.size()};
  for (std::size_t t = 0; t < sizes.size(); ++t) starts_[t + 1] = starts_[t] + sizes[t];
  collective_rows_.resize(trace.collectives.size());
  for (std::size_t row = 0; row < trace.device.size() && !collective_rows_.empty(); ++row)
    if (trace.device.collective[row] != 0) collective_rows_[trace.device.collective[row] - 1] = row;
  if (answer.run == nullptr) return;
  activities_.assign(trace.device.size(), kNone);
  for (std::size_t a = 0; a < answer.run->activities.size(); ++a)
    activities_[answer.run->activities[a].row.index] = static_cast<std::uint32_t>(a);
  std::uint32_t number = 0;
  for (const run::Step& step : answer.run->steps)
    step_numbers_.push_back(step.kind == answer.run->kind ? number++ : kNone);
  layers_ = layer_rows(*answer.run);
  if (answer.evidence == nullptr) return;
  kernels_.assign(answer.run->groups.size(), kNone);
  for (std::size_t k = 0; k < answer.evidence->kernels.size(); ++k)
    kernels_[answer.evidence->kernels[k].group.index] = static_cast<std::uint32_t>(k);
}

std::optional<std::size_t> Source::activity_of(std::size_t device_row) const {
  return entry(activities_, device_row);
}

std::optional<std::size_t> Source::number_of_step(std::size_t step) const {
  return entry(step_numbers_, step);
}

std::optional<std::size_t> Source::kernel_of(run::GroupId group) const {
  return entry(kernels_, group.index);
}

}  // namespace culprit::query
