// The trace's text, in the form of PyTorch's profiler: one event a line, times in microseconds with
// three digits behind a base time that ranks share. A C++ source line is written as Python frames
// are, since readers look there: the function's line, and in it the operator with "CallFrom".
// Cost: one pass over the logs; memory does not grow with the trace.
#pragma once

#include <cstdint>

#include "culprit/profile.h"
#include "profile/trace_file.h"
#include "profile/window.h"

namespace culprit::profile::detail {

// "step[DECODE bs=8 toks=8]", or the name that the engine gave.
std::string mark_text(const Record& record);

// Events written.
std::int64_t write_kineto(const Options& options, const Logs& logs, const Window& window,
                          const Calibration& calibration, TraceFile& file);

}  // namespace culprit::profile::detail
