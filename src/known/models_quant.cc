#include "known/models_quant.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace culprit::known {
namespace {

void add_patterns(const Json* list, Model& model) {
  if (list == nullptr || !list->is_array()) return;
  constexpr std::size_t kMostPatterns = 10'000;
  for (const Json& pattern : *list) {
    if (model.unquantized.size() == kMostPatterns) return;
    if (pattern.is_string()) model.unquantized.push_back(pattern.get<std::string>());
  }
}

std::string upper_case(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// compressed-tensors and ModelOpt: {"type": "float", "num_bits": 8}; E4M3 is what servers make of
// it.
void read_kv_scheme(const Json& scheme, const std::string& where, Model& model) {
  Fields fields(scheme, where);
  const auto width = fields.integer({"num_bits"});
  const auto type = fields.text({"type"});
  if (type != "float" || !width) return;
  if (*width == 8) model.kv_dtype = Dtype::kFp8E4m3;
  if (*width == 4) model.kv_dtype = Dtype::kFp4;
}

// "FP8", "NVFP4", "INT4", ...: a number's kind and width, as compressed-tensors writes them.
std::string algo_of(std::string_view type, std::int64_t width) {
  if (type == "float") return width == 4 ? "NVFP4" : width == 8 ? "FP8" : "";
  return width == 4 ? "INT4" : width == 8 ? "INT8" : "";
}

// compressed-tensors: {"config_groups": {"group_0": {"weights": {"num_bits": 4, ...}}}}. Groups that
// differ are a mixture, whose modules this table does not tell apart.
void read_groups(const Json& groups, const std::string& where, Model& model) {
  std::string algo;
  if (!groups.is_object()) return;
  for (const auto& group : groups) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (weights == group.end() || !weights->is_object()) continue;
    Fields fields(*weights, where);
    const std::string one =
        algo_of(fields.text({"type"}).value_or(""), fields.integer({"num_bits"}).value_or(0));
    algo = algo.empty() || algo == one ? one : "MIXED_PRECISION";
    if (const auto size = fields.integer({"group_size"})) model.quant_group = *size;
  }
  if (!algo.empty()) model.quant_algo = algo;
}

// What one scale covers, and the width where the method's name does not tell it.
void read_widths(Fields& fields, const std::string& where, Model& model) {
  constexpr std::int64_t kMxGroup = 32;
  if (const auto size = fields.integer({"group_size"})) model.quant_group = *size;
  const Json* block = fields.find("weight_block_size");
  if (block != nullptr && block->is_array() && !block->empty() &&
      block->front().is_number_unsigned()) {
    model.quant_group = block->front().get<std::int64_t>();
  }
  if (model.quant_algo == "MXFP4") model.quant_group = kMxGroup;
  const Json* groups = fields.find("config_groups");
  const bool named = fields.find("quant_algo") != nullptr;
  if (groups != nullptr && !named) read_groups(*groups, where, model);
  const bool integers = model.quant_algo == "AWQ" || model.quant_algo == "GPTQ";
  if (integers) {
    const std::string algo = algo_of("int", fields.integer({"bits", "w_bit"}).value_or(0));
    if (!algo.empty()) model.quant_algo = algo;
  }
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string as_glob(std::string_view pattern) {
  constexpr std::string_view kRegex = "re:";
  constexpr std::string_view kLanguage = "language_model.";
  std::string glob;
  const bool regex = pattern.substr(0, kRegex.size()) == kRegex;
  if (regex) pattern.remove_prefix(kRegex.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool any = regex && pattern.substr(i, 2) == ".*";
    if (any) {
      glob += '*';
      ++i;
    } else if (!regex || (pattern[i] != '\\' && pattern[i] != '^' && pattern[i] != '$')) {
      glob += pattern[i];
    }
  }
  if (glob.compare(0, kLanguage.size(), kLanguage) == 0) glob.erase(0, kLanguage.size());
  return glob;
}

// "a(b|c)d" of a regular expression stands for "abd" and "acd".
std::vector<std::string> alternatives(const std::string& glob) {
  const std::size_t open = glob.find('('), close = glob.find(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return {glob};
  std::vector<std::string> all;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(glob.find('|', begin), close);
    all.push_back(glob.substr(0, open) + glob.substr(begin, end - begin) + glob.substr(close + 1));
    begin = end + 1;
  }
  return all;
}

}  // namespace

std::optional<Error> read_quantization(const Json& object, const std::string& where, Model& model) {
  Fields fields(object, where);
  if (const auto algo = fields.text({"quant_algo", "quant_method"}))
    model.quant_algo = upper_case(*algo);
  read_widths(fields, where, model);
  for (const char* key :
       {"exclude_modules", "ignore", "ignored_layers", "modules_to_not_convert"}) {
    add_patterns(fields.find(key), model);
  }
  if (const auto kv = fields.text({"kv_cache_quant_algo"})) {
    const Dtype dtype = dtype_from_config(*kv);
    if (dtype != Dtype::kUnknown) {
      model.kv_dtype = dtype;
    } else if (upper_case(*kv) != "NONE" && upper_case(*kv) != "AUTO") {
      fields.fail("kv_cache_quant_algo", "is \"" + *kv + "\", which names no known type",
                  "known are FP8, NVFP4, INT8");
    }
  }
  const Json* scheme = fields.find("kv_cache_scheme");
  if (scheme != nullptr) read_kv_scheme(*scheme, where, model);
  return fields.error();
}

std::optional<Error> read_quantization_beside(const std::string& config_path, Model& model) {
  const auto path = std::filesystem::path(config_path).parent_path() / "hf_quant_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  const auto root = read_json_file(path.string(), "repair or remove the file");
  if (!root) return root.error();
  const auto found = root->is_object() ? root->find("quantization") : root->end();
  model.unquantized.clear();
  return read_quantization(found == root->end() ? *root : *found, path.string(), model);
}

bool is_unquantized(const Model& model, std::string_view module) {
  const auto covers = [&](const std::string& glob) {
    return glob_matches(glob, module) || glob_matches(glob + ".*", module);
  };
  return std::any_of(model.unquantized.begin(), model.unquantized.end(),
                     [&](const std::string& raw) {
                       const std::vector<std::string> globs = alternatives(as_glob(raw));
                       return std::any_of(globs.begin(), globs.end(), covers);
                     });
}

}  // namespace culprit::known
