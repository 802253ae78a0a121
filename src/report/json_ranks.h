// The members "budget" and "ranks" of the document: one budget, and the ranks side by side.
#pragma once

#include <vector>

#include "report/json_writer.h"
#include "report/report.h"

namespace culprit::report {

void write_budget(JsonWriter& w, const std::vector<evidence::BudgetRow>& budget);
void write_ranks(JsonWriter& w, const Answer& answer);  // empty where the input holds one

}  // namespace culprit::report
