// The tables as Grids. Times are per step, over the used steps, unless the title says else.
#pragma once

#include "report/grid.h"
#include "report/report.h"

namespace culprit::report {

// The answer must be usable.
Grid make_table(const Answer& answer, Table table);
Grid budget_grid(const Answer& answer);  // also part of the one-screen verdict

// table_traffic.cc: collectives; copies, sets and allocations.
Grid comm_grid(const Answer& answer);
Grid memory_grid(const Answer& answer);

// Member "table": {"name": ..., "rows": [...]}; no rows where the answer is not usable.
void write_table_json(JsonWriter& w, Table table, const Answer& answer);

// "flashinfer_mla_backend.py:639 forward_decode"; the path as it was recorded.
std::string place_of(const run::Source& source);
// The same with the last folder of the path only: "attention/flashinfer_mla_backend.py:639 ...".
std::string short_place_of(const run::Source& source);

}  // namespace culprit::report
