#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::report {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string device_name(const run::Run& run) {
  if (!run.properties.name.empty()) return run.properties.name;
  return run.gpu ? run.gpu->gpu.name : std::string();
}

std::string device_arch(const Answer& answer) {
  const run::Run& run = *answer.run;
  if (run.gpu) {
    const std::string& arch = run.gpu->gpu.arch;
    return arch.starts_with("sm") && !arch.starts_with("sm_") ? "sm_" + arch.substr(2) : arch;
  }
  const bool rocm = answer.info != nullptr && answer.info->rocm;
  if (rocm || run.properties.cc_major == 0) return {};
  return fmt::format("sm_{}{}", run.properties.cc_major, run.properties.cc_minor);
}

std::int64_t device_sms(const run::Run& run) {
  if (run.properties.sms > 0) return run.properties.sms;
  return run.gpu ? run.gpu->gpu.sms : 0;
}

std::vector<const run::Step*> main_steps(const run::Run& run) {
  std::vector<const run::Step*> steps;
  for (const run::Step& step : run.steps) {
    if (step.kind == run.kind) steps.push_back(&step);
  }
  return steps;
}

std::vector<StepGroup> step_groups(const run::Run& run) {
  // Main kind first, then by kind; unknown batch before the known ones.
  using Key = std::pair<int, std::int64_t>;
  std::map<Key, std::vector<Nanos>> lengths;
  std::map<Key, StepGroup> groups;
  for (const run::Step& step : run.steps) {
    const bool main = step.kind == run.kind;
    if (main && !step.used) continue;
    if (!main && !step.why_excluded.empty() && step.why_excluded != "other-kind") continue;
    const Key key{main ? -1 : static_cast<int>(step.kind), step.batch.value_or(-1)};
    lengths[key].push_back(step.length());
    groups[key].kind = step.kind;
    groups[key].batch = step.batch;
  }
  std::vector<StepGroup> out;
  for (auto& [key, group] : groups) {
    std::vector<Nanos>& of_group = lengths[key];
    std::sort(of_group.begin(), of_group.end());
    const std::size_t middle = of_group.size() / 2;
    group.count = static_cast<std::int64_t>(of_group.size());
    group.median = of_group.size() % 2 == 1
                       ? of_group[middle]
                       : of_group[middle - 1] + (of_group[middle] - of_group[middle - 1]) / 2;
    out.push_back(group);
  }
  return out;
}

std::string_view text_of(const run::Run& run, store::StringId id) {
  return run.trace->strings.or_empty(id);
}

const run::Group& group_of(const run::Run& run, const evidence::KernelFigures& kernel) {
  return run.groups[kernel.group.index];
}

std::string_view full_name(const run::Run& run, const evidence::KernelFigures& kernel) {
  return text_of(run, group_of(run, kernel).name);
}

std::string_view short_name(const run::Run& run, const evidence::KernelFigures& kernel) {
  const std::string& decoded = group_of(run, kernel).info.short_name;
  return decoded.empty() ? full_name(run, kernel) : std::string_view(decoded);
}

store::Note note_of(const Error& error) {
  std::string code = error.note_code;
  if (code.empty()) code = error.code == Error::Code::kCannotRead ? "cannot-read" : "unsupported";
  return {.code = std::move(code),
          .severity = store::Severity::kUnusable,
          .byte = std::nullopt,
          .event = std::nullopt,
          .where = error.where,
          .message = error.hint.empty() ? error.what : error.what + "; " + error.hint};
}

std::vector<store::Note> all_notes(const Answer& answer) {
  std::vector<store::Note> notes = answer.notes.all();
  if (!answer.failure) return notes;
  store::Note failure = note_of(*answer.failure);
  const auto known = std::find_if(notes.begin(), notes.end(), [&](const store::Note& note) {
    return note.code == failure.code;
  });
  if (known == notes.end()) {
    notes.push_back(std::move(failure));
  } else {
    known->severity = store::Severity::kUnusable;
  }
  return notes;
}

}  // namespace culprit::report
