// The lab's commands, each from options to answer.
#pragma once

#include "lab/tool/options.h"
#include "lab/tool/screen.h"

namespace culprit::lab {

Status run(const Options& options, Screen& screen);
Status bench(const Options& options, Screen& screen);
Status score(const Options& options, Screen& screen);
Status make_model(const Options& options, Screen& screen);
Status list_faults(const Options& options, Screen& screen);
Result<bool> check(const Options& options, Screen& screen);  // false: something missed
Result<bool> prove(const Options& options, Screen& screen);  // false: something was named wrong

}  // namespace culprit::lab
