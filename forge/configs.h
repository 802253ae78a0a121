// The files that lie beside a deployment's traces: the model's config.json and hf_quant_config.json
// as on Hugging Face, and server_info.json as SGLang answers to GET /get_server_info.
#pragma once

#include <string_view>

#include "forge/run.h"

namespace culprit::forge {

// nvidia/GLM-5-NVFP4: FP4 in all MLPs, bf16 attention, router and head; FP8 KV cache, 495,488
// tokens in pages of 64.
Configs glm5_configs(int world, bool graph);

}  // namespace culprit::forge
