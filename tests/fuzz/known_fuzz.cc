// Kernel names and launch geometry, model configs and their floors, and tables: hostile text must give an answer or an error, never a crash.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "known/csv.h"
#include "known/floor.h"
#include "known/kernel_name.h"
#include "known/launch_geometry.h"
#include "known/models.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const known::KernelInfo info = known::decode_kernel(text);
  (void)known::elements_from_grid(info, {{557496, 1, 1}, {128, 1, 1}});
  (void)known::decode_copy(text);
  if (const auto csv = known::Csv::parse(text, "table"); csv.ok()) {
    (void)known::check(*csv, {{"name"}, {"number"}, {"name"}});
  }
  if (size == 0 || data[0] != '{') return 0;
  const std::string path = "/tmp/culprit-fuzz-" + std::to_string(getpid()) + ".json";
  if (std::FILE* file = std::fopen(path.c_str(), "wb")) {
    std::fwrite(data, 1, size, file);
    std::fclose(file);
    if (const auto model = known::load_model(path); model.ok()) {
      known::FloorCase given;
      given.model = *model;
      given.gpu = known::gpus().front();
      given.context = 1000;
      (void)known::floor_of(given);
    }
    if (const auto server = known::load_server_info(path); server.ok()) known::tensors({}, *server);
  }
  return 0;
}
