// Place: which of the processes of an MPI run this one is, as its launcher says before MPI is opened;
// and how all of them come to one answer. A process that was started by hand is alone.
#pragma once

#include <optional>

#include "base/result.h"
#include "ranks/ranks.h"

namespace culprit {

// The place that mpirun gave this process; none: it was started by hand.
struct Place {
  int rank = 0, size = 1;
};
std::optional<Place> place_in_run();

// Whether an MPI launcher (mpirun, or srun with any PMI) started this process, with others or alone.
bool started_by_launcher();

// One answer for all ranks: well if all are, else the error of the first that is not, with its rank.
// Each rank calls it, at the same place. Null: there are no others.
Status agreed(Ranks* ranks, Status mine);

}  // namespace culprit
