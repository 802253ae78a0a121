// The model that a command line names: a checkpoint that is opened, or a random one that is made.
#pragma once

#include <optional>
#include <string>

#include "lab/files/checkpoint.h"
#include "lab/kernels/pages.h"
#include "lab/model/random_model.h"
#include "lab/tool/options.h"
#include "ranks/ranks.h"

namespace culprit::lab {

// The preset with what --layers, --experts and --scale change.
Result<ModelConfig> shaped_config(const Options& options);

struct LoadedModel {
  Checkpoint checkpoint;  // one of the two holds the weights
  RandomWeights random;
  std::optional<Pages> resident;  // a copy of the checkpoint's weights, if half the memory holds it
  Weights* weights = nullptr;
  std::string name;  // "glm-5, nvfp4, rank 0 of 8 by itself"
  std::int64_t bytes = 0;

  LoadedModel() = default;
  LoadedModel(LoadedModel&&) = delete;  // `weights` points into it
};
// ranks: of the run that options.shard is a share in, null: that share runs by itself.
Status load_model(const Options& options, LoadedModel& model, Ranks* ranks = nullptr);

// "6 layers (3 dense, 3 with 256 experts)"
std::string layers_of(const ModelConfig& config);

}  // namespace culprit::lab
