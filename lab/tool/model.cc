#include "lab/tool/model.h"

#include <fmt/format.h>

#include <utility>

#include "lab/engine/memory.h"
#include "lab/engine/resident.h"

namespace culprit::lab {
namespace {

// What one reading of all weights moves.
std::int64_t bytes_of(Weights& weights) {
  const bool tied = weights.lm_head.data == weights.embedding.data;
  std::int64_t sum = tied ? 0 : weights.embedding.bytes();
  for (const Matrix* const matrix : matrices_of(weights)) sum += matrix->bytes();
  return sum;
}

Status load_checkpoint(const std::string& path, LoadedModel& model) {
  TRY(model.checkpoint, open_checkpoint(path));
  model.weights = &model.checkpoint.weights;
  model.name = path;
  if (bytes_of(*model.weights) > machine_bytes() / 2) {
    model.name += ", read where it is mapped";
    return Ok{};
  }
  Workers workers(static_cast<int>(usable_cores().size()));
  TRY(model.resident, make_resident(*model.weights, workers));
  return Ok{};
}

}  // namespace

Result<ModelConfig> shaped_config(const Options& options) {
  TRY(ModelConfig config, preset(options.preset));
  return resized(std::move(config), options.resize);
}

Status load_model(const Options& options, LoadedModel& model) {
  if (!options.model.empty()) {
    TRY([[maybe_unused]] const Ok loaded, load_checkpoint(options.model, model));
  } else {
    TRY(const ModelConfig config, shaped_config(options));
    const int threads = static_cast<int>(usable_cores().size());
    TRY(model.random,
        random_weights({config, options.scheme, options.seed}, options.shard, threads));
    model.weights = &model.random.weights;
    model.name = fmt::format("{}, {}", options.preset, scheme_name(options.scheme));
    if (options.shard.of > 1)
      model.name += fmt::format(", rank {} of {} by itself (its all-reduces have nobody to add)",
                                options.shard.rank, options.shard.of);
  }
  model.bytes = bytes_of(*model.weights);
  return Ok{};
}

std::string layers_of(const ModelConfig& config) {
  const std::int64_t dense = config.router.experts > 0 ? config.dense_layers : config.layers;
  if (dense == config.layers) return fmt::format("{} dense layers", config.layers);
  return fmt::format("{} layers ({} dense, {} with {} experts)", config.layers, dense,
                     config.layers - dense, config.router.experts);
}

}  // namespace culprit::lab
