// Views: what several renderers say about a Run in the same words: its device, its steps by kind
// and batch, the names of its kernels and threads. Nothing here is measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace culprit::report {

std::string device_name(const run::Run& run);   // empty: unknown
std::string device_arch(const Answer& answer);  // "sm_120", "gfx942"; empty: unknown
std::int64_t device_sms(const run::Run& run);   // SMs or compute units; 0: unknown

// Steps of the kind that the figures are about; their place here is the index that --steps takes.
std::vector<const run::Step*> main_steps(const run::Run& run);
// Used steps and complete steps of other kinds, by kind (the main one first) and batch.
struct StepGroup {
  run::StepKind kind = run::StepKind::kUnknown;
  std::optional<std::int64_t> batch;
  std::int64_t count = 0;
  Nanos median = 0;
};
std::vector<StepGroup> step_groups(const run::Run& run);

std::string_view text_of(const run::Run& run, store::StringId id);  // empty where invalid
const run::Group& group_of(const run::Run& run, const evidence::KernelFigures& kernel);
std::string_view full_name(const run::Run& run, const evidence::KernelFigures& kernel);
std::string_view short_name(const run::Run& run, const evidence::KernelFigures& kernel);

std::string shape_text(const std::vector<std::int64_t>& shape);  // "[495552, 1, 576]"

// Notes of the input and, last, the failure if there is one.
std::vector<store::Note> all_notes(const Answer& answer);

}  // namespace culprit::report
