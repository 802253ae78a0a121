// What the renderers of a comparison say in the same words, and its tables. Internal to this layer.
#pragma once

#include "report/grid.h"
#include "report/report.h"

namespace culprit::report {

std::string signed_duration(Nanos ns);               // "+2.59 ms", "-120 µs", "0 ns"
std::string signed_percent(double share);            // "+113 %"
std::string noise_text(const compare::Comparison&);  // "± 0.02 ms, p < 0.0001"
std::string side_text(const compare::Side&);  // "14 decode steps (batch 1): 28.5 ms mean, ..."
std::string kernel_text(const compare::KernelChange&);  // "old → new" where replaced
std::string cause_head(const compare::Cause&, std::size_t index);
// Notes of the pair, then those of each side with what they are about.
std::vector<store::Note> notes_of(const compare::Comparison&);

Grid budget_delta_grid(const compare::Comparison&);
Grid kernel_delta_grid(const compare::Comparison&, bool all);  // without those that stay the same
Grid rank_delta_grid(const compare::Comparisons&);

}  // namespace culprit::report
