#include "lab/engine/cores.h"

#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace culprit::lab {
namespace {

std::vector<int>& process_cores() {
  static std::vector<int> cores = cores_of_this_thread();
  return cores;
}

}  // namespace

const std::vector<int>& usable_cores() { return process_cores(); }

void keep_process_to(const std::vector<int>& cores) {
  keep_this_thread_to(cores);
  process_cores() = cores_of_this_thread();
}

std::vector<int> cores_of_this_thread() {
  std::vector<int> cores;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
#else
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core)
    cores.push_back(static_cast<int>(core));
#endif
  return cores;
}

void keep_this_thread_to([[maybe_unused]] const std::vector<int>& cores) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<unsigned>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
#endif
}

}  // namespace culprit::lab
