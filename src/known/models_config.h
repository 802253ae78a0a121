// Model configs as Hugging Face and ModelOpt write them; the parts of load_model.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "known/models.h"

namespace culprit::known {

// A config.json, and hf_quant_config.json where it lies beside it.
Result<Model> read_model_config(const std::string& path);
// True if `module` ("model.layers.5.self_attn.o_proj") stays in the model's weight_dtype. Patterns
// are globs with '*', and also cover what is below a module they name; "re:.*x" of
// compressed-tensors is read as "*x", "(a|b)" of it as either.
bool is_unquantized(const Model& model, std::string_view module);

}  // namespace culprit::known
