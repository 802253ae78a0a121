// Database: the summaries of a fleet as tables that any SQLite tool reads. One row of `traces` for each
// trace, also for those that were left out; the other tables refer to its `id`. docs/fleet.md lists the
// columns. Written from the shelf, one summary at a time, beside its name, and renamed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/merge.h"
#include "fleet/shelf.h"

namespace culprit::fleet {

// Errors: kCannotRead, naming the file; a summary that is not there.
Status write_database(const std::string& path, const Shelf& shelf,
                      const std::vector<TraceFile>& traces, const Merged& merged,
                      const Progress& progress = {});

}  // namespace culprit::fleet
