// The door between the program and the module that alone links MPI (ranks/mpi.cc). Both are built from one
// tree; the door's number, which changes with Ranks, says whether they were.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranks/ranks.h"

namespace culprit {

inline constexpr std::uint32_t kMpiDoor = 2;
inline constexpr const char* kMpiModule = "libculprit_mpi.so";
inline constexpr const char* kMpiEntry = "culprit_open_mpi";
// What the module exports: joins the group of all processes of the run, once per process. Null: `fault`
// says why in at most `room` bytes, the zero included. Deleting the result leaves the group.
using OpenMpi = Ranks* (*)(std::uint32_t door, char* fault, std::size_t room);

}  // namespace culprit
