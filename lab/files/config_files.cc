#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/version.h"
#include "lab/files/write.h"
#include "lab/model/encode.h"
#include "lab/number/fp4.h"

namespace culprit::lab {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string text_of(const OrderedJson& json) { return json.dump(2) + "\n"; }

// The modules that the NVFP4 scheme keeps in BF16. A dot after the layer's number, or 1 would take 10.
std::vector<std::string> kept_modules(const ModelConfig& config) {
  std::vector<std::string> modules{"lm_head"};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    modules.push_back(fmt::format("model.layers.{}.self_attn*", layer));
    if (config.is_moe(layer)) modules.push_back(fmt::format("model.layers.{}.mlp.gate", layer));
  }
  return modules;
}

}  // namespace

std::vector<TextFile> config_files(const RandomModel& model) {
  std::vector<TextFile> files;
  OrderedJson config = OrderedJson::parse(config_to_json(model.config));
  if (model.scheme == Scheme::kNvfp4) {
    const OrderedJson quantization{{"quant_algo", "NVFP4"},
                                   {"kv_cache_quant_algo", "FP8"},
                                   {"group_size", kNvfp4Block},
                                   {"exclude_modules", kept_modules(model.config)}};
    files.push_back({"hf_quant_config.json",
                     text_of({{"producer", {{"name", "culprit"}, {"version", version()}}},
                              {"quantization", quantization}})});
  } else if (model.scheme == Scheme::kFp8) {
    config["quantization_config"] = {{"quant_method", "fp8"},
                                     {"fmt", "e4m3"},
                                     {"activation_scheme", "dynamic"},
                                     {"weight_block_size", {kFp8Block, kFp8Block}}};
  }
  files.push_back({"config.json", text_of(config)});
  return files;
}

}  // namespace culprit::lab
