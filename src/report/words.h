// What the text and Markdown of an answer say in the same words. Times are in the unit of `page`.
#pragma once

#include <optional>
#include <string>

#include "report/page.h"
#include "report/report.h"

namespace culprit::report {

std::string size_text(const Answer& answer);  // "113 MB, 312,897 events", "8 traces: ..."
std::string steps_text(const Page& page, const Answer& answer);  // "14 decode steps (batch 1): ..."
std::string device_text(
    const Answer& answer);  // device, peak and where that is from, model, layers
std::string note_text(const store::Note& note);

// Of a suspect: its standing and cost; its tensor; its first kernel, and that one's figures.
std::string head_text(const Page& page, const verdict::Suspect& suspect);
std::string tensor_text(const verdict::TensorMatch& tensor, std::optional<double> live_fraction);
std::string kernel_text(const Answer& answer, const verdict::Suspect& suspect);
std::string figures_text(const Page& page, const Answer& answer, const verdict::Suspect& suspect);
std::string gain_text(const Page& page, const verdict::Gain& gain);
std::string bound_text(std::string_view bound);  // "the GPU"

}  // namespace culprit::report
