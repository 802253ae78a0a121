#include "known/models_config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "known/config_json.h"

namespace culprit::known {
namespace {

constexpr std::string_view kPassConfig =
    "pass the model's config.json, its folder, or a name of `culprit list models`";

// Multimodal configs keep the language model one level down.
const Json& language_part(const Json& root) {
  if (!root.is_object() || root.contains("hidden_size")) return root;
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const auto found = root.find(key);
    if (found != root.end() && found->is_object()) return *found;
  }
  return root;
}

void read_sizes(Fields& fields, Model& model) {
  model.hidden = fields.integer({"hidden_size", "n_embd", "d_model"}).value_or(0);
  model.layers = fields.integer({"num_hidden_layers", "n_layer", "num_layers"}).value_or(0);
  model.heads = fields.integer({"num_attention_heads", "n_head"}).value_or(0);
  model.kv_heads = fields.integer({"num_key_value_heads"}).value_or(model.heads);
  model.head_dim =
      fields.integer({"head_dim"}).value_or(model.heads > 0 ? model.hidden / model.heads : 0);
  model.q_lora_rank = fields.integer({"q_lora_rank"}).value_or(0);
  model.kv_lora_rank = fields.integer({"kv_lora_rank"}).value_or(0);
  model.qk_nope_head_dim = fields.integer({"qk_nope_head_dim"}).value_or(0);
  model.qk_rope_head_dim = fields.integer({"qk_rope_head_dim"}).value_or(0);
  model.v_head_dim = fields.integer({"v_head_dim"}).value_or(0);
  model.intermediate =
      fields.integer({"intermediate_size", "n_inner", "ffn_hidden_size"}).value_or(0);
  model.index_heads = fields.integer({"index_n_heads"}).value_or(0);
  model.index_head_dim = fields.integer({"index_head_dim"}).value_or(0);
  model.vocab = fields.integer({"vocab_size"}).value_or(0);
}

void read_experts(Fields& fields, Model& model) {
  model.experts =
      fields.integer({"n_routed_experts", "num_experts", "num_local_experts"}).value_or(0);
  model.moe_intermediate =
      fields.integer({"moe_intermediate_size", "expert_ffn_hidden_size"}).value_or(0);
  model.experts_per_token =
      fields.integer({"num_experts_per_tok", "num_experts_per_token", "top_k_experts"}).value_or(0);
  model.shared_experts = fields.integer({"n_shared_experts", "num_shared_experts"}).value_or(0);
  model.first_dense = fields.integer({"first_k_dense_replace"}).value_or(0);
  const auto shared_size = fields.integer({"shared_expert_intermediate_size"});
  if (shared_size && model.shared_experts == 0 && model.moe_intermediate > 0) {
    model.shared_experts = *shared_size / model.moe_intermediate;
  }
}

std::int64_t count_texts(const Json& list, bool (*counts)(std::string_view)) {
  std::int64_t count = 0;
  for (const Json& item : list) {
    if (item.is_string() && counts(item.get_ref<const std::string&>())) ++count;
  }
  return count;
}

bool attends(std::string_view layer_type) {
  for (const std::string_view other : {"linear", "mamba", "conv", "recurrent"}) {
    if (layer_type.find(other) != std::string_view::npos) return false;
  }
  return true;
}

// Which layers attend, and which hold experts, in the ways that hybrid models say it.
void read_layer_kinds(Fields& fields, Model& model) {
  const Json* types = fields.find("layer_types");
  if (types != nullptr && types->is_array() &&
      types->size() == static_cast<std::size_t>(model.layers)) {
    model.attention_layers = count_texts(*types, attends);
  } else if (const auto every = fields.integer({"full_attention_interval"}); every && *every > 0) {
    model.attention_layers = model.layers / *every;
  }
  // Nemotron-H: one letter per block, "M" Mamba, "E" experts, "-" MLP, "*" attention.
  const Json* pattern = fields.find("hybrid_override_pattern");
  if (pattern != nullptr && pattern->is_string()) {
    const auto& letters = pattern->get_ref<const std::string&>();
    model.attention_layers = std::count(letters.begin(), letters.end(), '*');
    model.moe_layers = std::count(letters.begin(), letters.end(), 'E');
    model.dense_layers = std::count(letters.begin(), letters.end(), '-');
    if (model.layers == 0) model.layers = static_cast<std::int64_t>(letters.size());
  }
  const Json* frequency = fields.find("moe_layer_freq");
  if (frequency != nullptr && frequency->is_array()) {
    model.moe_layers = std::count(frequency->begin(), frequency->end(), Json(1));
    model.dense_layers = std::count(frequency->begin(), frequency->end(), Json(0));
  }
  const auto step = fields.integer({"interleave_moe_layer_step"});
  if (step && *step > 1 && model.experts > 0) {
    model.moe_layers = model.layers / *step;
    model.dense_layers = model.layers - *model.moe_layers;
  }
}

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

// One object with the quantisation of weights and KV cache; the keys of all producers.
std::optional<Error> read_quantization(const Json& object, const std::string& where, Model& model) {
  Fields fields(object, where);
  if (const auto algo = fields.text({"quant_algo", "quant_method"}))
    model.quant_algo = upper_case(*algo);
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

std::string name_of(const Json& root, Fields& fields, const Model& model) {
  const auto path = fields.text({"_name_or_path"});
  if (path && !path->empty() && path->front() != '/' && path->front() != '.') return *path;
  const auto type = root.is_object() ? root.find("model_type") : root.end();
  const bool has_type = type != root.end() && type->is_string();
  return !model.architecture.empty() ? model.architecture
         : has_type                  ? type->get<std::string>()
                                     : "model";
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

}  // namespace

bool is_unquantized(const Model& model, std::string_view module) {
  return std::any_of(model.unquantized.begin(), model.unquantized.end(),
                     [&](const std::string& raw) {
                       const std::string glob = as_glob(raw);
                       return glob_matches(glob, module) || glob_matches(glob + ".*", module);
                     });
}

Result<Model> read_model_config(const std::string& path) {
  TRY(const Json root, read_json_file(path, kPassConfig));
  const Json& part = language_part(root);
  Fields fields(part, path);
  Fields outer(root, path);
  Model model;
  const Json* architectures = outer.find("architectures");
  if (architectures != nullptr && architectures->is_array() && !architectures->empty() &&
      architectures->front().is_string()) {
    model.architecture = architectures->front().get<std::string>();
  }
  read_sizes(fields, model);
  read_experts(fields, model);
  read_layer_kinds(fields, model);
  model.name = name_of(root, outer, model);
  auto type = fields.text({"torch_dtype", "dtype"});
  if (!type) type = outer.text({"torch_dtype", "dtype"});
  if (type) model.weight_dtype = dtype_from_config(*type);
  for (const Fields* read : {&fields, &outer}) {
    if (read->error()) return *read->error();
  }
  if (model.hidden == 0 || model.layers == 0) {
    return Error{Error::Code::kBadInput,
                 "has no hidden_size or no num_hidden_layers: not a model config", path,
                 std::string(kPassConfig)};
  }
  const Json* quantization = outer.find("quantization_config");
  if (quantization == nullptr) quantization = fields.find("quantization_config");
  if (quantization != nullptr) {
    if (auto error = read_quantization(*quantization, path, model)) return *std::move(error);
  }
  if (auto error = read_quantization_beside(path, model)) return *std::move(error);
  return model;
}

}  // namespace culprit::known
