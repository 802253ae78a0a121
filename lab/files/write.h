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
#include "lab/model/random_model.h"

namespace culprit::lab {

// A tensor to be written. `dtype` is the container's word: "BF16", "Q4_K".
struct PlannedTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;  // slowest first
  std::int64_t bytes = 0;
  std::function<Status(OutputFile&)> write;  // exactly `bytes`
};

// A small file beside the tensors.
struct TextFile {
  std::string name, text;
};
// The files that say what a safetensors folder holds, in the order in which to write them: how it is
// quantised, in the words that servers look for (ModelOpt's for NVFP4, DeepSeek's for FP8), and last
// config.json, as a folder without it is no checkpoint.
std::vector<TextFile> config_files(const RandomModel& model);

// Files of at most about `shard_bytes`; with more than one, their index; then the texts. Returns the
// bytes of the tensors' files.
Result<std::int64_t> write_safetensors(const std::string& folder,
                                       std::vector<PlannedTensor> tensors,
                                       const std::vector<TextFile>& texts,
                                       std::int64_t shard_bytes);

// The keys that llama.cpp asks for, with a tokenizer of which only the number of tokens means anything.
Result<std::int64_t> write_gguf(const std::string& path, const ModelConfig& config,
                                const std::vector<PlannedTensor>& tensors);

}  // namespace culprit::lab
