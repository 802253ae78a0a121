// Weights of a checkpoint, or a rank's share of them, copied from its mapping into huge pages. A step
// reads each weight once, and a mapping has small pages, whose translation keeps memory waiting: from
// huge ones a core of Zen 4 read a quarter more per second. Cost: the memory, and one copy at load.
#pragma once

#include "lab/engine/workers.h"
#include "lab/kernels/pages.h"
#include "lab/model/share.h"
#include "lab/model/weights.h"

namespace culprit::lab {

// Points the weights into the pages that it returns; experts of other ranks become empty. The embedding
// stays where it is mapped (the rank's rows of it), unless it is the head as well: a step reads one row
// of it. Errors: a tensor that cannot be cut, more bytes than the machine has.
Result<Pages> make_resident(Weights& weights, Workers& workers, const Shard& shard = {});

}  // namespace culprit::lab
