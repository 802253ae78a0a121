// What the run's own log should say: a table of kernels, and all that the trace lacks.
#pragma once

#include <string>

#include "culprit/profile.h"
#include "profile/window.h"

namespace culprit::profile::detail {

std::string summarize(const Options& options, const Logs& logs, const Window& window,
                      const Calibration& calibration, const Report& report);
// Of a window without a whole step; `steps`: that the engine made.
Error why_empty(const Options& options, const Window& window, std::int64_t steps);

}  // namespace culprit::profile::detail
