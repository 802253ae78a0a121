// Habits: what a server's host does that makes steps slow, to be switched on one by one. Each is
// consulted in one place; all are off by default, and none changes a result.
#pragma once

#include "base/id.h"

namespace culprit::lab {

struct Habits {
  Nanos host_delay = 0;         // busy work of the host's before each launch (Launcher)
  bool sync_per_layer = false;  // the host waits for the stream behind each layer (Forward)
};

}  // namespace culprit::lab
