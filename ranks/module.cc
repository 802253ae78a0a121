#include "ranks/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "ranks/door.h"

namespace culprit {
namespace {

constexpr const char* kToInstall =
    "several ranks need Open MPI (Debian: openmpi-bin, libopenmpi3) and a Culprit that was built "
    "with libopenmpi-dev installed";

// CULPRIT_MODULES: from the program's folder to that of its modules, as installed.
#ifndef CULPRIT_MODULES
#define CULPRIT_MODULES "../lib/culprit"
#endif

std::string folder_of_program() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string program(path.data(), static_cast<std::size_t>(length > 0 ? length : 0));
  return program.substr(0, program.rfind('/') + 1);
}

Error cannot_open(const std::string& where, std::string what) {
  return {Error::Code::kUnsupported, std::move(what), where, kToInstall};
}

std::string last_fault() {
  const char* const fault = dlerror();
  return fault == nullptr ? "it cannot be loaded" : fault;
}

}  // namespace

Result<std::string> find_mpi_module() {
  const std::string folder = folder_of_program();
  for (const std::string& place : {folder, folder + CULPRIT_MODULES "/"})
    if (access((place + kMpiModule).c_str(), R_OK) == 0) return place + kMpiModule;
  return cannot_open(folder, std::string("the module for several ranks, ") + kMpiModule +
                                 ", is neither beside the program nor in its library folder");
}

Result<std::unique_ptr<Ranks>> open_mpi(const std::string& module) {
  void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);  // until the process ends
  if (handle == nullptr) return cannot_open(module, last_fault());
  void* const symbol = dlsym(handle, kMpiEntry);
  if (symbol == nullptr) return cannot_open(module, last_fault());
  OpenMpi open = nullptr;
  static_assert(sizeof open == sizeof symbol);
  std::memcpy(&open, &symbol, sizeof open);
  std::array<char, 512> fault{};
  std::unique_ptr<Ranks> ranks(open(kMpiDoor, fault.data(), fault.size()));
  if (!ranks) return cannot_open(module, fault.data());
  return ranks;
}

}  // namespace culprit
