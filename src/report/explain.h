// The member "explain" of the JSON answer: {"suspect", "kernels": [{"kernel": index into "kernels",
// times of a call, parents by operator chain, line and launch, the table of tensors}]}.
#pragma once

#include "report/json_writer.h"
#include "report/report.h"

namespace culprit::report {

// answer.explanation must not be null.
void write_explanation(JsonWriter& w, const Answer& answer);

}  // namespace culprit::report
