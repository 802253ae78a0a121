// The lab's commands, each from options to answer.
#pragma once

#include "lab/tool/options.h"
#include "lab/tool/screen.h"
#include "ranks/ranks.h"

namespace culprit::lab {

// ranks: the others of this run, null: there are none.
Status run(const Options& options, Ranks* ranks, Screen& screen);
Status bench(const Options& options, Ranks* ranks, Screen& screen);
Status score(const Options& options, Screen& screen);
Status make_model(const Options& options, Screen& screen);
Status list_faults(const Options& options, Screen& screen);
Result<bool> check(const Options& options, Screen& screen);  // false: something missed
Result<bool> prove(const Options& options, Screen& screen);  // false: something was named wrong

}  // namespace culprit::lab
