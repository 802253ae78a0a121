#include "known/models_config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "known/config_json.h"
#include "known/models_quant.h"

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
  model.index_topk = fields.integer({"index_topk"}).value_or(0);
  model.vocab = fields.integer({"vocab_size"}).value_or(0);
}

void read_experts(Fields& fields, Model& model) {
  model.experts =
      fields.integer({"n_routed_experts", "num_experts", "num_local_experts"}).value_or(0);
  model.moe_intermediate =
      fields.integer({"moe_intermediate_size", "expert_ffn_hidden_size"}).value_or(0);
  model.experts_per_token = fields
                                .integer({"num_experts_per_tok", "num_experts_per_token",
                                          "experts_per_token", "top_k_experts"})
                                .value_or(0);
  model.shared_experts = fields.integer({"n_shared_experts", "num_shared_experts"}).value_or(0);
  model.first_dense = fields.integer({"first_k_dense_replace"}).value_or(0);
  model.shared_intermediate = fields.integer({"shared_expert_intermediate_size"}).value_or(0);
  if (model.shared_intermediate > 0 && model.shared_experts == 0) model.shared_experts = 1;
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
  // MiniMax: one number per layer, 1 where it attends and 0 where it is linear.
  const Json* kinds = fields.find("attn_type_list");
  if (kinds != nullptr && kinds->is_array() && !kinds->empty()) {
    model.attention_layers = std::count(kinds->begin(), kinds->end(), Json(1));
  }
}

// Layers counted from 0 for which `is` holds.
template <class Predicate>
std::int64_t count_layers(std::int64_t layers, const Predicate& is) {
  constexpr std::int64_t kMostLayers = 100'000;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < std::min(layers, kMostLayers); ++i) count += is(i) ? 1 : 0;
  return count;
}

// Which layers hold experts: DeepSeek's moe_layer_freq, Llama 4's interleave_moe_layer_step, Qwen's
// decoder_sparse_step and mlp_only_layers.
void read_expert_layers(Fields& fields, Model& model) {
  if (model.experts == 0) return;
  const Json* frequency = fields.find("moe_layer_freq");
  if (frequency != nullptr && frequency->is_array()) {
    model.moe_layers = std::count(frequency->begin(), frequency->end(), Json(1));
    model.dense_layers = std::count(frequency->begin(), frequency->end(), Json(0));
    return;
  }
  const std::int64_t every = fields.integer({"moe_layer_freq"}).value_or(1);
  const std::int64_t step =
      fields.integer({"interleave_moe_layer_step", "decoder_sparse_step"}).value_or(1);
  const Json* dense = fields.find("mlp_only_layers");
  const bool some_dense = dense != nullptr && dense->is_array() && !dense->empty();
  if (every <= 1 && step <= 1 && !some_dense) return;
  const auto holds_experts = [&](std::int64_t i) {
    if (every > 1) return i >= model.first_dense && i % every == 0;
    if (some_dense && std::find(dense->begin(), dense->end(), Json(i)) != dense->end())
      return false;
    return step <= 1 || (i + 1) % step == 0;
  };
  model.moe_layers = count_layers(model.layers, holds_experts);
  model.dense_layers = model.layers - *model.moe_layers;
}

// Layers that see a window only. Without a list of layers: every one (Mistral), every second one
// (gpt-oss).
void read_windows(Fields& fields, Model& model) {
  model.sliding_window = fields.integer({"sliding_window"}).value_or(0);
  const Json* types = fields.find("layer_types");
  const std::string type = fields.text({"model_type"}).value_or("");
  if (types != nullptr && types->is_array()) {
    model.sliding_layers = count_texts(*types, [](std::string_view layer) {
      return layer.find("sliding") != std::string_view::npos;
    });
  } else if (type == "mistral" || type == "mixtral") {
    model.sliding_layers = model.layers;
  } else if (type == "gpt_oss") {
    model.sliding_layers = model.layers / 2;
  }
  if (model.sliding_window == 0) model.sliding_layers = 0;
}

// Layers whose indexer scores tokens; the others take over the list of the last one that does
// (GLM-5.2). Rule of index_topk_freq: transformers, glm_moe_dsa.
void read_index_layers(Fields& fields, Model& model) {
  const Json* types = fields.find("indexer_types");
  if (types != nullptr && types->is_array() && !types->empty()) {
    model.index_layers =
        count_texts(*types, [](std::string_view layer) { return layer == "full"; });
    return;
  }
  const auto frequency = fields.integer({"index_topk_freq"});
  if (!frequency || *frequency <= 1) return;
  constexpr std::int64_t kUsualOffset = 2;
  const std::int64_t offset = fields.integer({"index_skip_topk_offset"}).value_or(kUsualOffset);
  model.index_layers = count_layers(model.layers, [&](std::int64_t i) {
    return std::max<std::int64_t>(i - offset + 1, 0) % *frequency == 0;
  });
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

}  // namespace

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
  read_expert_layers(fields, model);
  read_windows(fields, model);
  read_index_layers(fields, model);
  model.tied_embeddings = fields.flag("tie_word_embeddings")
                              .value_or(outer.flag("tie_word_embeddings").value_or(false));
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
