#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/near.h"
#include "lab/model/config.h"

namespace culprit::lab {
namespace {

constexpr Yarn kDeepseekYarn{40, 4096, 32, 1, 1, 1};

ModelConfig deepseek_v3() {
  ModelConfig c;
  c.architecture = "DeepseekV3ForCausalLM";
  c.family = Family::kMla;
  c.hidden = 7168, c.layers = 61, c.vocab = 129280, c.max_positions = 163840;
  c.heads = c.kv_heads = 128;
  c.q_lora_rank = 1536, c.kv_lora_rank = 512, c.nope_dim = 128, c.rope_dim = 64, c.v_dim = 128;
  c.intermediate = 18432, c.moe_intermediate = 2048, c.dense_layers = 3;
  c.router = {256, 8, 1, 8, 4, Scoring::kSigmoid, true, true, 2.5};
  c.rms_eps = 1e-6, c.rope_theta = 1e4;
  c.rope = RopeStyle::kInterleaved;
  c.yarn = kDeepseekYarn;
  c.eos = {1};
  return c;
}

ModelConfig deepseek_v32() {
  ModelConfig c = deepseek_v3();
  c.architecture = "DeepseekV32ForCausalLM";
  c.indexer = {64, 128, 2048, RopeStyle::kHalfSplit};
  return c;
}

ModelConfig kimi_k2() {
  ModelConfig c = deepseek_v3();
  c.vocab = 163840, c.max_positions = 131072;
  c.heads = c.kv_heads = 64;
  c.dense_layers = 1;
  c.router = {384, 8, 1, 1, 1, Scoring::kSigmoid, true, true, 2.827};
  c.rope_theta = 5e4;
  c.yarn = Yarn{32, 4096, 1, 1, 1, 1};
  c.eos = {163586};
  return c;
}

ModelConfig glm_5() {
  ModelConfig c = deepseek_v3();
  c.architecture = "GlmMoeDsaForCausalLM";
  c.hidden = 6144, c.layers = 78, c.vocab = 154880, c.max_positions = 202752;
  c.heads = c.kv_heads = 64;
  c.q_lora_rank = 2048, c.nope_dim = 192, c.v_dim = 256;
  c.intermediate = 12288;
  c.router.groups = c.router.groups_kept = 1;
  c.indexer = {32, 128, 2048, RopeStyle::kInterleaved};
  c.rms_eps = 1e-5, c.rope_theta = 1e6;
  c.yarn.reset();
  c.eos = {154820, 154827, 154829};
  return c;
}

ModelConfig qwen3_30b() {
  ModelConfig c;
  c.architecture = "Qwen3MoeForCausalLM";
  c.hidden = 2048, c.layers = 48, c.vocab = 151936, c.max_positions = 40960;
  c.heads = 32, c.kv_heads = 4, c.head_dim = 128;
  c.qk_norm = true;
  c.intermediate = 6144, c.moe_intermediate = 768;
  c.router = {128, 8, 0, 1, 1, Scoring::kSoftmax, false, true, 1};
  c.rms_eps = 1e-6, c.rope_theta = 1e6;
  c.eos = {151645};
  return c;
}

ModelConfig qwen3_235b() {
  ModelConfig c = qwen3_30b();
  c.hidden = 4096, c.layers = 94, c.heads = 64;
  c.intermediate = 12288, c.moe_intermediate = 1536;
  return c;
}

// Without its stretching of positions ("llama3"), which needs other code and moves the same bytes.
ModelConfig llama_31_8b() {
  ModelConfig c;
  c.architecture = "LlamaForCausalLM";
  c.hidden = 4096, c.layers = 32, c.vocab = 128256, c.max_positions = 131072;
  c.heads = 32, c.kv_heads = 8, c.head_dim = 128;
  c.intermediate = 14336;
  c.rms_eps = 1e-5, c.rope_theta = 5e5;
  c.eos = {128001};
  return c;
}

// The same model in small: what a linear layer sums over is a multiple of 256, as ggml's larger
// blocks need it, but for k_b (nope_dim).
ModelConfig tiny(ModelConfig c) {
  c.hidden = 256, c.layers = 3, c.vocab = 512, c.max_positions = 4096;
  c.heads = 4;
  c.kv_heads = c.family == Family::kMla ? 4 : 2;
  c.intermediate = 512;
  c.eos = {2};
  if (c.yarn) c.yarn->factor = 4, c.yarn->original_positions = 64;
  if (c.family == Family::kMla) {
    c.q_lora_rank = c.kv_lora_rank = 256;
    c.nope_dim = c.v_dim = 64, c.rope_dim = 32;
  } else {
    c.head_dim = 64;
  }
  if (c.router.experts > 0) {
    c.moe_intermediate = 256;
    c.dense_layers = std::min<std::int64_t>(c.dense_layers, 1);
    c.router.experts = 8, c.router.per_token = 2;
    if (c.router.groups > 1) c.router.groups = 4, c.router.groups_kept = 2;
  }
  if (c.indexer.heads > 0) c.indexer.heads = 4, c.indexer.head_dim = 64, c.indexer.top_k = 16;
  return c;
}

struct Preset {
  std::string_view name;
  ModelConfig (*make)();
};
constexpr std::array<Preset, 7> kPresets{{{"glm-5", glm_5},
                                          {"deepseek-v3", deepseek_v3},
                                          {"deepseek-v3.2", deepseek_v32},
                                          {"kimi-k2", kimi_k2},
                                          {"qwen3-30b-a3b", qwen3_30b},
                                          {"qwen3-235b-a22b", qwen3_235b},
                                          {"llama-3.1-8b", llama_31_8b}}};
constexpr std::array<Preset, 6> kTiny{{{"tiny-glm-5", glm_5},
                                       {"tiny-deepseek-v3", deepseek_v3},
                                       {"tiny-deepseek-v3.2", deepseek_v32},
                                       {"tiny-kimi-k2", kimi_k2},
                                       {"tiny-qwen3-moe", qwen3_30b},
                                       {"tiny-llama", llama_31_8b}}};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  names.reserve(kPresets.size() + kTiny.size());
  for (const Preset& each : kPresets) names.emplace_back(each.name);
  for (const Preset& each : kTiny) names.emplace_back(each.name);
  return names;
}

Result<ModelConfig> preset(std::string_view name) {
  for (const Preset& each : kPresets)
    if (each.name == name) return each.make();
  for (const Preset& each : kTiny)
    if (each.name == name) return tiny(each.make());
  const std::vector<std::string> names = preset_names();
  return Error{Error::Code::kUsage, fmt::format("there is no preset \"{}\"", name), "",
               did_you_mean(name, names, fmt::format("there are {}", fmt::join(names, ", ")))};
}

}  // namespace culprit::lab
