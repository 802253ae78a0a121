// The module that links MPI: the processes of an MPI run as Ranks (ranks/door.h).
// Waiting gives the core away, since there may be more ranks than cores. Faults of MPI itself end all
// ranks, with MPI's own message: its default.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "ranks/door.h"

namespace culprit {
namespace {

class MpiRanks : public Ranks {
 public:
  MpiRanks(int rank, int size, Local local) : Ranks(rank, size), local_(local) {}
  ~MpiRanks() override { MPI_Finalize(); }
  std::string_view group() const override { return "tp"; }
  Local local() const override { return local_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void all_gather(const float* mine, std::int64_t count, float* all) override {
    const int floats = static_cast<int>(count);
    MPI_Allgather(mine, floats, MPI_FLOAT, all, floats, MPI_FLOAT, MPI_COMM_WORLD);
  }

 private:
  Local local_;
};

Ranks::Local find_local(int rank) {
  MPI_Comm machine{};
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
  Ranks::Local local;
  MPI_Comm_rank(machine, &local.rank);
  MPI_Comm_size(machine, &local.size);
  local.first = rank;
  MPI_Bcast(&local.first, 1, MPI_INT, 0, machine);
  MPI_Comm_free(&machine);
  return local;
}

// What Open MPI reads when it starts; whoever set it otherwise is heeded.
void set_up() {
  constexpr int kKeep = 0;
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", kKeep);
  // Copies from memory to memory by the kernel need rights that containers lack.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", kKeep);
}

Ranks* refused(char* fault, std::size_t room, const char* why) {
  std::snprintf(fault, room, "%s", why);
  return nullptr;
}

}  // namespace
}  // namespace culprit

extern "C" [[gnu::visibility("default")]] culprit::Ranks* culprit_open_mpi(std::uint32_t door,
                                                                           char* fault,
                                                                           std::size_t room) {
  using namespace culprit;
  if (door != kMpiDoor)
    return refused(fault, room, "the module is of another version than the program");
  set_up();
  // A step's launches may run on another thread than the one that loads and samples.
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return refused(fault, room, "MPI does not start");
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return refused(fault, room, "this MPI cannot be called from another thread than the first");
  }
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return new MpiRanks(rank, size, find_local(rank));
}
