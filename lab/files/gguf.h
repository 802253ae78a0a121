// A GGUF file, version 2 or 3: keys with values, then the tensors' names, extents (fastest first), types
// and offsets, then the data from a multiple of general.alignment on. Every length, offset and count is
// checked against the file before it is believed; what is read costs no more than its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "lab/files/checkpoint.h"
#include "lab/files/mapped_file.h"

namespace culprit::lab {

// ggml's types by their numbers in a file. Values and bytes of a block.
struct GgmlType {
  std::uint32_t id;
  std::string_view name;  // "Q4_K"
  std::int64_t values, bytes;
};
const GgmlType* ggml_type(std::uint32_t id);             // none: nullptr
const GgmlType* ggml_type_named(std::string_view name);  // none: nullptr

// A list's values are not kept, only how many there are.
struct GgufList {
  std::uint64_t count = 0;
};
using GgufValue = std::variant<bool, std::int64_t, double, std::string, GgufList>;

class Gguf : public Container {
 public:
  static Result<std::unique_ptr<Gguf>> open(const std::string& path);
  const std::map<std::string, GgufValue, std::less<>>& keys() const { return keys_; }
  const std::string& path() const { return path_; }

 private:
  class Reader;
  explicit Gguf(MappedFile file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  MappedFile file_;
  std::string path_;
  std::map<std::string, GgufValue, std::less<>> keys_;
};

// The configuration that a GGUF's keys and tensors state.
Result<ModelConfig> config_from_gguf(const Gguf& file);

}  // namespace culprit::lab
