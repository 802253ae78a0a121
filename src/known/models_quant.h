// How a checkpoint's weights and KV cache are quantised, and which modules are not, in the words of
// every producer: ModelOpt (hf_quant_config.json), compressed-tensors, DeepSeek's FP8, MXFP4, AWQ,
// GPTQ. Names that no producer uses leave the model's type unknown, never guessed.
#pragma once

#include <optional>
#include <string>

#include "known/config_json.h"
#include "known/models.h"

namespace culprit::known {

// One object with the quantisation of weights and KV cache; `where` names the file.
std::optional<Error> read_quantization(const Json& object, const std::string& where, Model& model);
// hf_quant_config.json in the folder of a config.json; it beats what the config says.
std::optional<Error> read_quantization_beside(const std::string& config_path, Model& model);

}  // namespace culprit::known
