// Several ranks of one run: starting them, joining them, speaking with one voice. The process that a
// user starts starts mpirun, unless mpirun started it; each rank then takes its part of the machine's
// cores. Rank 0 alone prints.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/place.h"
#include "ranks/ranks.h"

namespace culprit::lab {

// Runs `culprit lab ARGS` as so many ranks on this machine; 0, 1 or 2, as they exit. `err`: whether
// that is a terminal, on which rank 0 may draw. Errors: no MPI, a rank that was killed.
Result<int> start_ranks(std::span<const std::string_view> args, std::int64_t ranks, std::FILE* err);
// Joins the others of this process's run, `wanted` in all, and takes this rank's part of the cores.
// Where there are others but not as many, they are joined all the same: to leave together.
Status join_ranks(std::int64_t wanted, std::unique_ptr<Ranks>& ranks);

// The cores of rank `rank` of `size` that share `cores`: neighbours, each core with one rank; where
// there are fewer cores than ranks, one core each, in turns.
std::vector<int> cores_of(const std::vector<int>& cores, int rank, int size);

}  // namespace culprit::lab
