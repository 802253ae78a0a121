// Places: the threads and streams of an Nsight Systems export, each of a process. An export may hold
// many processes, whose correlation ids collide and whose devices are numbered per process
// (CUDA_VISIBLE_DEVICES); settle() makes both unique within the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/trace.h"

namespace culprit::ingest {

// TARGET_INFO_CUDA_DEVICE: which GPU of the machine a process calls its device `cuda`.
struct CudaDevice {
  std::int64_t pid = 0, cuda = 0, gpu = 0;
};

class Places {
 public:
  explicit Places(store::Trace& trace) : trace_(trace) {}

  // Globals are the export's globalTid and globalPid: the process stands above the low 24 bits.
  store::ThreadId host(std::optional<std::int64_t> global_tid);
  store::ThreadId stream(std::optional<std::int64_t> global_pid, std::int32_t device,
                         std::int64_t stream);
  std::uint32_t process_of(store::ThreadId thread) const { return places_[thread.index].process; }

  // Once all rows are read: names the threads, numbers the devices by GPU where the export tells it
  // for all of them, else keeps processes apart by their label; puts the process into the
  // correlation ids. `gpus`: how many the machine has; 0: unknown. Returns whether devices are
  // numbered by GPU now.
  bool settle(const std::vector<CudaDevice>& devices, std::size_t gpus);

 private:
  struct Place {
    std::uint32_t process = 0;  // 0: not recorded
    std::int32_t device = -1;
    std::int64_t lane = -1;  // thread or stream
    bool on_host = false;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
  };
  std::uint32_t process(std::optional<std::int64_t> global);
  store::ThreadId thread(const Place& place);
  using GpuOf = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;  // pid, cuda -> gpu
  std::optional<std::int32_t> gpu_of(const Place& place, const GpuOf& known) const;
  void name_threads(bool by_gpu, bool labelled);
  void note_shared_devices(const std::vector<std::uint8_t>& works, bool by_gpu) const;
  std::int64_t pid(std::uint32_t process) const { return processes_[process - 1] & 0xffffff; }

  store::Trace& trace_;
  std::vector<std::int64_t> processes_;  // globals without their low 24 bits, by process - 1
  std::unordered_map<std::int64_t, std::uint32_t> process_of_;
  std::vector<Place> places_;  // by thread
  std::unordered_map<Place, store::ThreadId, Hash> known_;
  Place last_;
  store::ThreadId last_thread_;
};

}  // namespace culprit::ingest
