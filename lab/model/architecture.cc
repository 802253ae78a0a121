#include "lab/model/architecture.h"

#include <algorithm>
#include <array>

namespace culprit::lab {
namespace {

using enum RopeStyle;
constexpr Family kMla = Family::kMla, kGqa = Family::kGqa;

// llama.cpp permutes the rows of llama's q and k into interleaved pairs when it converts them; of the
// others it keeps the rows. A GGUF of deepseek2 does not say which config it came from: the last row
// of a GGUF name stands for it.
constexpr std::array<Architecture, 7> kArchitectures{{
    {"DeepseekV2ForCausalLM", "deepseek_v2", "deepseek2", kMla, kInterleaved, kHalfSplit,
     kInterleaved, false, false, true},
    {"DeepseekV3ForCausalLM", "deepseek_v3", "deepseek2", kMla, kInterleaved, kHalfSplit,
     kInterleaved, false, false, true},
    {"DeepseekV32ForCausalLM", "deepseek_v32", "deepseek32", kMla, kInterleaved, kHalfSplit,
     kInterleaved, false, true, true},
    {"GlmMoeDsaForCausalLM", "glm_moe_dsa", "glm-dsa", kMla, kInterleaved, kInterleaved,
     kInterleaved, false, true, true},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", kGqa, kHalfSplit, kHalfSplit, kHalfSplit, true,
     false, true},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", kGqa, kHalfSplit, kHalfSplit, kHalfSplit, true, false,
     false},
    {"LlamaForCausalLM", "llama", "llama", kGqa, kHalfSplit, kHalfSplit, kInterleaved, false, false,
     false},
}};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* architecture_named(std::string_view name) {
  const auto* const found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                         [&](const Architecture& a) { return a.name == name; });
  return found == kArchitectures.end() ? nullptr : found;
}

const Architecture* architecture_of_gguf(std::string_view name) {
  const auto found = std::find_if(kArchitectures.rbegin(), kArchitectures.rend(),
                                  [&](const Architecture& a) { return a.gguf == name; });
  return found == kArchitectures.rend() ? nullptr : &*found;
}

}  // namespace culprit::lab
