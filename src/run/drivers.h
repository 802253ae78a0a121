// Drivers: which host process launched each device activity, where a file holds several processes
// that no label tells apart. An id that one process has alone decides for its activity and speaks
// for the row it is drawn on; an id that several have goes to the process that drives the row, if
// that is clear from the others or from time: nothing runs before its launch. What stays unclear is
// linked to none.
#pragma once

#include "run/chapters.h"
#include "run/id_table.h"

namespace culprit::run {

// Fills links.driver, call_of, has_activity and unclear.
void find_drivers(const store::Trace& trace, const IdTable& calls, Links& links);

}  // namespace culprit::run
