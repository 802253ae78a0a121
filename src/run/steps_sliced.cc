// Steps of a slice: as they were found in the recording that it was cut from. What is around them in
// the file (launches before a step, kernels behind it) is there to explain them, and is no step.
#include "run/chapters.h"

namespace culprit::run {
namespace {

StepKind kind_named(std::string_view name) {
  for (int k = 0; k <= static_cast<int>(StepKind::kIdle); ++k)
    if (step_kind_name(static_cast<StepKind>(k)) == name) return static_cast<StepKind>(k);
  return StepKind::kUnknown;
}

StepsHow how_named(std::string_view name) {
  for (int h = 0; h < static_cast<int>(StepsHow::kWholeTrace); ++h)
    if (steps_how_name(static_cast<StepsHow>(h)) == name) return static_cast<StepsHow>(h);
  return StepsHow::kWholeTrace;
}

std::optional<std::int64_t> known(std::int64_t count) {
  return count >= 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

bool take_sliced_steps(Run& run) {
  const auto& slice = run.trace->info.slice;
  if (!slice) return false;
  for (const store::SliceStep& from : slice->steps) {
    Step step;
    step.begin = from.begin;
    step.end = from.end;
    step.kind = kind_named(from.kind);
    step.batch = known(from.batch);
    step.tokens = known(from.tokens);
    step.mark = from.mark;
    run.steps.push_back(std::move(step));
  }
  run.how = how_named(slice->how);
  add_note(run, "sliced", store::Severity::kInfo, static_cast<std::int64_t>(run.steps.size()),
           "the file is a slice of a longer recording: " + slice->of);
  return true;
}

}  // namespace culprit::run
