// The commands, each in a file of its own: cmd_diagnose.cc, cmd_list.cc.
#pragma once

#include "cli/console.h"
#include "cli/settings.h"

namespace culprit::cli {

// diagnose and the seven tables: load -> build -> measure -> judge -> render.
Outcome diagnose(const Settings& settings, Console& console);
// list {suspects,gpus,models,formats,notes}
Outcome list(const Settings& settings, Console& console);

}  // namespace culprit::cli
