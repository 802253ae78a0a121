// A checkpoint on disk: a folder of safetensors (one file, or shards with an index; ModelOpt NVFP4,
// FP8 blocks, BF16), or one GGUF file. Memory-mapped; every offset, shape and length is checked
// before it is believed, and an error names file, byte and tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/model/config.h"
#include "lab/model/weights.h"
#include "lab/number/matrix.h"

namespace culprit::lab {

// A tensor as its container describes it.
struct Stored {
  std::string dtype;                // the container's own word: "U8", "F8_E4M3", "Q4_K"
  std::vector<std::int64_t> shape;  // slowest first, in both containers
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::string where;  // "model-00001-of-00002.safetensors: byte 4096"
};

// The tensors of one container by name, with the mapping that they point into.
class Container {
 public:
  virtual ~Container() = default;
  const Stored* find(std::string_view name) const;
  const std::map<std::string, Stored, std::less<>>& tensors() const { return tensors_; }

 protected:
  std::map<std::string, Stored, std::less<>> tensors_;
};

// A checkpoint that was opened: its configuration, its weights bound, and what keeps them alive.
struct Checkpoint {
  std::unique_ptr<Container> container;
  Weights weights;
};
// path: a folder with config.json and safetensors, or a .gguf file.
Result<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace culprit::lab
