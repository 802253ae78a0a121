// The members "budget", "ranks" and "fleet" of the document: one budget, the ranks side by side, and the
// traces that they come from.
#pragma once

#include <vector>

#include "report/json_writer.h"
#include "report/report.h"

namespace culprit::report {

void write_budget(JsonWriter& w, const std::vector<evidence::BudgetRow>& budget);
void write_ranks(JsonWriter& w, const Answer& answer);  // empty where the input holds one
void write_fleet(JsonWriter& w, const FleetFigures& fleet);

}  // namespace culprit::report
