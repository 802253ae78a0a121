// Inputs: the traces of a command line: one run, or the ranks of one run, and captures that lend to
// its graph kernels. Of several ranks one trace at a time is in memory: each is measured as soon as it
// is read, and that of the rank which the answer is about is read once more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/companions.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "evidence/ranks.h"
#include "report/report.h"
#include "run/run.h"

namespace culprit::cli {

struct Inputs {
  std::unique_ptr<store::Trace> run;  // whose figures the answer shows
  std::vector<Companion> captures;
  evidence::Ranks ranks;  // of several files; else empty
};

// Fills the answer's path, and of several ranks its list of inputs and the notes of all but the one
// that the answer is about. Errors: those of reading; kUsage for traces that are not of one run.
Result<Inputs> read_inputs(const Settings& settings, Console& console,
                           const evidence::Knowledge& known, const run::Options& options,
                           report::Answer& answer);

}  // namespace culprit::cli
