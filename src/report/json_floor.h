// The member "floor" of the --json document; null and empty where no floor is known.
#pragma once

#include "evidence/floor.h"
#include "report/json_writer.h"

namespace culprit::report {

void write_floor(JsonWriter& w, const evidence::StepFloor* floor);

}  // namespace culprit::report
