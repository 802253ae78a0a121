// Kernel names and launch geometry, a name per line; tables; and model configs, which begin with a brace, with their floors:
// hostile text must give an answer or an error, never a crash. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "known/csv.h"
#include "known/floor.h"
#include "known/kernel_name.h"
#include "known/launch_geometry.h"
#include "known/models.h"
#include "memory_file.h"

using namespace culprit;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) return false;
  return true;
}

void name(std::string_view text) {
  constexpr std::size_t kColumns = 60;
  const known::KernelInfo info = known::decode_kernel(text);
  check(!is_ascii(text) || info.short_name.size() <= kColumns);
  for (const known::Geometry& geometry :
       {known::Geometry{{557496, 1, 1}, {128, 1, 1}},
        known::Geometry{{0x7fffffff, 2, 3}, {1024, 1, 1}}, known::Geometry{{1, 1, 1}, {256, 1, 1}},
        known::Geometry{}}) {
    const auto elements = known::elements_from_grid(info, geometry);
    check(!elements || (elements->min >= 0 && elements->min <= elements->max));
    if (elements)
      if (const auto rows = known::multiples_within(*elements, 576))
        check(elements->contains(rows->min) && elements->contains(rows->max));
    check(known::rows_from_grid(info, geometry).value_or(0) >= 0);
  }
  (void)known::decode_copy(text);
  check(known::launches_for_32bit_indexing(static_cast<std::int64_t>(text.size()) << 20, 576, 2) >=
        1);
}

void document(std::string_view text) {
  const fuzz::MemoryFile file(text);
  const auto model = known::load_model(file.path());
  const auto server = known::load_server_info(file.path());
  check(model.ok() || !model.error().what.empty());
  check(server.ok() || !server.error().what.empty());
  const known::Deployment deployment = server.ok() ? *server : known::Deployment{};
  for (const known::Tensor& tensor :
       known::tensors(model.ok() ? *model : known::Model{}, deployment))
    check(tensor.elements >= 0 && tensor.per_rank >= 0);
  if (model.ok()) {
    known::FloorCase given;
    given.model = *model;
    given.gpu = known::gpus().front();
    given.context = 1000;
    (void)known::floor_of(given);
  }
}

void table(std::string_view text) {
  if (const auto csv = known::Csv::parse(text, "table"); csv.ok())
    (void)known::check(*csv, {{"name"}, {"number"}, {"name"}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.substr(0, 1) == "{") {
    document(text);
    return 0;
  }
  table(text);
  for (;;) {
    const std::size_t line = text.find('\n');
    name(text.substr(0, line));
    if (line == std::string_view::npos) return 0;
    text.remove_prefix(line + 1);
  }
}
