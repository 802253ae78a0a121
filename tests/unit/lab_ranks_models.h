// Small models that four ranks can share in every format: parts of 128 where FP8 has its blocks.
#pragma once

#include "lab/model/config.h"

namespace culprit::lab {

inline constexpr const char* kRankFamilies[] = {"tiny-glm-5", "tiny-deepseek-v3", "tiny-qwen3-moe",
                                                "tiny-llama"};

inline ModelConfig divisible(const char* name) {
  ModelConfig config = *preset(name);
  config.layers = 2;
  config.vocab = 256;
  config.heads = 8;
  config.intermediate = 512;
  if (config.family == Family::kMla)
    config.kv_heads = 8, config.nope_dim = 64, config.rope_dim = 64, config.v_dim = 128;
  else
    config.head_dim = 128;  // of two KV heads, which four ranks share in pairs
  if (config.router.experts > 0) config.moe_intermediate = 512;
  return config;
}

}  // namespace culprit::lab
