// The header of a safetensors file, read as it streams by: what it costs is what it holds, whatever it
// claims. Nothing but its form is checked here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::lab {

struct HeaderEntry {
  std::string name, dtype;
  std::vector<std::uint64_t> shape, offsets;
};
// file: for the places of errors; the header's text begins at its byte 8.
Result<std::vector<HeaderEntry>> parse_safetensors_header(std::string_view text,
                                                          const std::string& file);

}  // namespace culprit::lab
