// From the bytes of a GGUF to bound weights. Built for libFuzzer with the `fuzz` preset; in ordinary
// builds replay.cc feeds the seeds.
#include <cstdint>
#include <string_view>

#include "bound.h"
#include "memory_file.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file({reinterpret_cast<const char*>(data), size});
  fuzz::check(lab::open_checkpoint(file.path()), lab::Naming::kGguf);
  return 0;
}
