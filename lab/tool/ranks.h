// Several ranks of one run: starting them, joining them, speaking with one voice. The process that a
// user starts starts mpirun, unless mpirun started it; each rank then takes its part of the machine's
// cores. Rank 0 alone prints.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/ranks/ranks.h"

namespace culprit::lab {

// The place that mpirun gave this process; none: it was started by hand.
struct Place {
  int rank = 0, size = 1;
};
std::optional<Place> place_in_run();

// Runs `culprit lab ARGS` as so many ranks on this machine; 0, 1 or 2, as they exit. `err`: whether
// that is a terminal, on which rank 0 may draw. Errors: no MPI, a rank that was killed.
Result<int> start_ranks(std::span<const std::string_view> args, std::int64_t ranks, std::FILE* err);
// Joins the others of this process's run, `wanted` in all, and takes this rank's part of the cores.
// Where there are others but not as many, they are joined all the same: to leave together.
Status join_ranks(std::int64_t wanted, std::unique_ptr<Ranks>& ranks);

// One answer for all ranks: well if all are, else the error of the first that is not, with its rank.
// Each rank calls it, at the same place. Null: there are no others.
Status agreed(Ranks* ranks, Status mine);

// The cores of rank `rank` of `size` that share `cores`: neighbours, each core with one rank; where
// there are fewer cores than ranks, one core each, in turns.
std::vector<int> cores_of(const std::vector<int>& cores, int rank, int size);

}  // namespace culprit::lab
