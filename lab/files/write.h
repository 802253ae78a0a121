// Writing a checkpoint: the tensors are listed first, then made and written one after the other, some
// megabytes at a time, so that a checkpoint larger than the memory can be written.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/files/output_file.h"
#include "lab/model/config.h"

namespace culprit::lab {

// A tensor to be written. `dtype` is the container's word: "BF16", "Q4_K".
struct PlannedTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;  // slowest first
  std::int64_t bytes = 0;
  std::function<Status(OutputFile&)> write;  // exactly `bytes`
};

// Files of at most about `shard_bytes`; with more than one, their index. config.json comes last: a
// folder without it is no checkpoint. Returns the bytes written.
Result<std::int64_t> write_safetensors(const std::string& folder, const ModelConfig& config,
                                       std::vector<PlannedTensor> tensors,
                                       std::int64_t shard_bytes);

// The keys that llama.cpp asks for, with a tokenizer of which only the number of tokens means anything.
Result<std::int64_t> write_gguf(const std::string& path, const ModelConfig& config,
                                const std::vector<PlannedTensor>& tensors);

}  // namespace culprit::lab
