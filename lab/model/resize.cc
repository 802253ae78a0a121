#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "lab/model/config.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kWidthStep = 256;  // ggml's largest block

std::int64_t scaled(std::int64_t extent, double scale, std::int64_t step) {
  if (extent == 0) return 0;
  const double steps = std::round(static_cast<double>(extent) * scale / static_cast<double>(step));
  return std::max<std::int64_t>(static_cast<std::int64_t>(steps), 1) * step;
}

void scale_widths(ModelConfig& c, double scale) {
  for (std::int64_t* const width :
       {&c.hidden, &c.intermediate, &c.moe_intermediate, &c.q_lora_rank, &c.kv_lora_rank, &c.vocab})
    *width = scaled(*width, scale, kWidthStep);
  c.kv_heads = scaled(c.kv_heads, scale, 1);
  c.heads = scaled(c.heads, scale, c.kv_heads);
  if (c.family == Family::kMla) c.kv_heads = c.heads;
  if (c.indexer.heads > 0) c.indexer.heads = scaled(c.indexer.heads, scale, 1);
}

void reduce_experts(Router& router, std::int64_t experts) {
  router.experts = experts;
  router.per_token = std::min(router.per_token, experts);
  while (router.groups > 1 && (experts % router.groups != 0 || experts / router.groups < 2))
    --router.groups;
  router.groups_kept = std::min(router.groups_kept, router.groups);
  router.per_token = std::min(router.per_token, router.groups_kept * (experts / router.groups));
}

Error refused(std::string what, std::string hint) {
  return {Error::Code::kUsage, std::move(what), "", std::move(hint)};
}

}  // namespace

Result<ModelConfig> resized(ModelConfig config, const Resize& resize) {
  if (!(resize.scale > 0 && resize.scale <= 16))
    return refused(fmt::format("a scale of {} is not within 0 to 16", resize.scale),
                   "1 is the model as it is");
  if (resize.experts && config.router.experts == 0)
    return refused("the model has no experts to choose a number of", "leave the experts out");
  if (resize.experts && *resize.experts < 1)
    return refused(fmt::format("{} experts are none", *resize.experts), "choose 1 at least");
  if (resize.scale != 1) scale_widths(config, resize.scale);
  if (resize.experts) reduce_experts(config.router, *resize.experts);
  if (resize.layers) {
    config.layers = *resize.layers;
    // A few layers of a mixture of experts should have some: one layer is one with experts.
    const std::int64_t dense = config.router.experts > 0 ? config.layers - 1 : config.layers;
    config.dense_layers =
        std::clamp<std::int64_t>(config.dense_layers, 0, std::max<std::int64_t>(dense, 0));
  }
  if (resize.dense_layers) config.dense_layers = *resize.dense_layers;
  std::erase_if(config.eos, [&](std::int64_t token) { return token >= config.vocab; });
  TRY([[maybe_unused]] const Ok sound, check(config, "the resized model"));
  return config;
}

}  // namespace culprit::lab
