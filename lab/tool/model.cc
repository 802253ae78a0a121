#include "lab/tool/model.h"

#include <fmt/format.h>

#include <utility>

namespace culprit::lab {
namespace {

std::int64_t bytes_of(const Mlp& mlp) {
  return mlp.gate.bytes() + mlp.up.bytes() + mlp.down.bytes();
}
// What one reading of all weights moves.
std::int64_t bytes_of(const Weights& weights) {
  std::int64_t sum = weights.embedding.bytes();
  if (weights.lm_head.data != weights.embedding.data) sum += weights.lm_head.bytes();
  for (const LayerWeights& layer : weights.layers) {
    const MlaWeights& mla = layer.mla;
    for (const Matrix* matrix :
         {&mla.q_a, &mla.q_b, &mla.kv_a, &mla.kv_b, &mla.k_b, &mla.v_b, &mla.o, &mla.indexer.q_b,
          &mla.indexer.k, &mla.indexer.weights, &layer.gqa.q, &layer.gqa.k, &layer.gqa.v,
          &layer.gqa.o, &layer.router})
      sum += matrix->empty() ? 0 : matrix->bytes();
    for (const Mlp& expert : layer.experts) sum += bytes_of(expert);
    for (const Mlp* mlp : {&layer.dense, &layer.shared})
      sum += mlp->gate.empty() ? 0 : bytes_of(*mlp);
  }
  return sum;
}

}  // namespace

Result<ModelConfig> shaped_config(const Options& options) {
  TRY(ModelConfig config, preset(options.preset));
  return resized(std::move(config), options.resize);
}

Status load_model(const Options& options, LoadedModel& model) {
  if (!options.model.empty()) {
    TRY(model.checkpoint, open_checkpoint(options.model));
    model.weights = &model.checkpoint.weights;
    model.name = options.model;
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
