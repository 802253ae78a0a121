// The files that lie beside a deployment's traces: the model's config.json and hf_quant_config.json
// as on Hugging Face, and server_info.json as SGLang answers to GET /get_server_info.
#pragma once

#include <string_view>

#include "forge/run.h"

namespace culprit::forge {

// nvidia/GLM-5-NVFP4: FP4 in all MLPs, bf16 attention, router and head; FP8 KV cache, 495,488
// tokens in pages of 64.
Configs glm5_configs(int world, bool graph);

// meta-llama/Llama-3.1-8B-Instruct in bf16: no quantization file; 393,216 tokens in pages of one.
Configs llama_configs(bool graph);

}  // namespace culprit::forge
