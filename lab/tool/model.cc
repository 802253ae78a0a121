#include "lab/tool/model.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "lab/engine/cores.h"
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

// All ranks of this machine hold their shares of it.
Status check_memory(std::int64_t bytes, const Shard& shard, const std::string& path, Ranks& ranks) {
  const std::int64_t here = bytes / shard.of * ranks.local().size;
  if (machine_bytes() == 0 || here <= machine_bytes()) return Ok{};
  return Error{
      .code = Error::Code::kUnusable,
      .what = fmt::format("the weights of {} ranks take {}, this machine has {}",
                          ranks.local().size, text::bytes(here), text::bytes(machine_bytes())),
      .where = path,
      .hint = "one rank reads weights that do not fit from the mapped file",
      .note_code = {}};
}

Status load_checkpoint(const Options& options, LoadedModel& model, Ranks* ranks) {
  const std::string& path = options.model;
  TRY(model.checkpoint, open_checkpoint(path));
  model.weights = &model.checkpoint.weights;
  model.name = path;
  const std::int64_t bytes = bytes_of(*model.weights);
  if (ranks != nullptr) {
    TRY([[maybe_unused]] const Ok fits, check_memory(bytes, options.shard, path, *ranks));
  } else if (bytes > machine_bytes() / 2) {
    model.name += ", read where it is mapped";
    return Ok{};
  }
  Workers workers(static_cast<int>(usable_cores().size()));
  TRY(model.resident, make_resident(*model.weights, workers, options.shard));
  return Ok{};
}

}  // namespace

Result<ModelConfig> shaped_config(const Options& options) {
  TRY(ModelConfig config, preset(options.preset));
  return resized(std::move(config), options.resize);
}

Status load_model(const Options& options, LoadedModel& model, Ranks* ranks) {
  if (!options.model.empty()) {
    TRY([[maybe_unused]] const Ok loaded, load_checkpoint(options, model, ranks));
  } else {
    TRY(const ModelConfig config, shaped_config(options));
    const int threads = static_cast<int>(usable_cores().size());
    TRY(model.random,
        random_weights({config, options.scheme, options.seed}, options.shard, threads));
    model.weights = &model.random.weights;
    model.name = fmt::format("{}, {}", options.preset, scheme_name(options.scheme));
    if (options.shard.of > 1 && ranks == nullptr)
      model.name += fmt::format(", rank {} of {} by itself (its all-reduces have nobody to add)",
                                options.shard.rank, options.shard.of);
  }
  const Shard& shard = options.shard;
  if (ranks != nullptr) model.name += fmt::format(", shared by {} ranks", shard.of);
  if (shard.expert_groups > 1)
    model.name += fmt::format(", experts dealt to {} groups", shard.expert_groups);
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
