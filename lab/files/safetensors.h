// A folder of safetensors: u64 length of the header, the header as JSON {name: {dtype, shape,
// data_offsets}}, then the data; offsets count from the header's end. One file, or shards that
// model.safetensors.index.json lists. Every length, offset and shape is checked against the file, and
// no two tensors may share a byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/files/checkpoint.h"
#include "lab/files/mapped_file.h"

namespace culprit::lab {

inline constexpr const char* kSafetensorsFile = "model.safetensors";
inline constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

class Safetensors : public Container {
 public:
  static Result<std::unique_ptr<Container>> open(const std::string& folder);

 private:
  Status add(const std::string& folder, const std::string& file);

  std::vector<MappedFile> files_;
};

// Bytes of one value of a dtype: 4 for "F32"; 0 for a word that is not known.
std::int64_t safetensors_value_bytes(std::string_view dtype);

}  // namespace culprit::lab
