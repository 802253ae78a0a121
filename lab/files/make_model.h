// Checkpoints of random models (lab/model/random_model.h), written piece by piece: a model of any size
// in the memory of one layer's expert. The same seed gives the same model in either container.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "lab/model/random_model.h"

namespace culprit::lab {

enum class ContainerKind : std::uint8_t { kSafetensors, kGguf };

struct MakeModel {
  RandomModel model;
  ContainerKind container = ContainerKind::kSafetensors;
  std::string path;  // a folder, made if it is not there; or a .gguf file
  std::int64_t shard_bytes = std::int64_t{5'000'000'000};  // of safetensors
  bool overwrite = false;                                  // else what is there is an error
};
// Returns the bytes written. Schemes that a container cannot hold are errors: F32, BF16, FP8 and NVFP4
// go into safetensors, all but FP8 into GGUF.
Result<std::int64_t> make_model(const MakeModel& order);

}  // namespace culprit::lab
