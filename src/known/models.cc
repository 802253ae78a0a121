#include "known/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/near.h"
#include "known/csv.h"
#include "known/kernel_text.h"
#include "known/models_config.h"

namespace culprit::known {
namespace {

Model from_row(const Csv& csv, std::size_t row) {
  const auto size = [&](const char* column) { return csv.integer(row, column).value_or(0); };
  Model model;
  model.name = csv.cell(row, "model");
  model.architecture = csv.cell(row, "architecture");
  model.hidden = size("hidden_size");
  model.layers = size("num_hidden_layers");
  model.heads = size("num_attention_heads");
  model.kv_heads = csv.integer(row, "num_key_value_heads").value_or(model.heads);
  model.head_dim =
      csv.integer(row, "head_dim").value_or(model.heads > 0 ? model.hidden / model.heads : 0);
  model.q_lora_rank = size("q_lora_rank");
  model.kv_lora_rank = size("kv_lora_rank");
  model.qk_nope_head_dim = size("qk_nope_head_dim");
  model.qk_rope_head_dim = size("qk_rope_head_dim");
  model.v_head_dim = size("v_head_dim");
  model.intermediate = size("intermediate_size");
  model.moe_intermediate = size("moe_intermediate_size");
  model.experts = size("n_experts");
  model.experts_per_token = size("num_experts_per_tok");
  model.shared_experts = size("n_shared_experts");
  model.first_dense = size("first_k_dense_replace");
  model.index_heads = size("index_n_heads");
  model.index_head_dim = size("index_head_dim");
  model.index_topk = size("index_topk");
  model.index_layers = csv.integer(row, "index_layers");
  model.sliding_window = size("sliding_window");
  model.sliding_layers = size("sliding_layers");
  model.tied_embeddings = lower_case(csv.cell(row, "tie_word_embeddings")) == "true";
  model.vocab = size("vocab_size");
  model.attention_layers = csv.integer(row, "attention_layers");
  model.dense_layers = csv.integer(row, "dense_layers");
  model.moe_layers = csv.integer(row, "moe_layers");
  const std::string_view type = csv.cell(row, "torch_dtype");
  if (!type.empty()) model.weight_dtype = dtype_from_config(type);
  model.quant_algo = csv.cell(row, "quant_algo");
  model.quant_group = size("quant_group");
  model.unquantized = cell_list(csv.cell(row, "unquantized"));
  model.unverified = cell_list(csv.cell(row, "unverified"));
  const Dtype kv = dtype_from_config(csv.cell(row, "kv_cache_quant_algo"));
  if (kv != Dtype::kUnknown) model.kv_dtype = kv;
  return model;
}

std::vector<Model>& table() {
  static std::vector<Model> built_in = [] {
    std::vector<Model> all;
    const auto csv = Csv::parse(kModelsCsv, "models.csv");
    for (std::size_t row = 0; csv.ok() && row < csv->rows(); ++row)
      all.push_back(from_row(*csv, row));
    return all;
  }();
  return built_in;
}

std::string_view without_owner(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

// "zai-org/GLM-5", or "glm-5" where only one owner has it.
const Model* by_name(std::string_view name) {
  const std::string wanted = lower_case(name);
  const Model* found = nullptr;
  for (const Model& model : table()) {
    const std::string full = lower_case(model.name);
    if (full == wanted) return &model;
    if (without_owner(full) == wanted) found = &model;
  }
  return found;
}

bool looks_like_path(std::string_view text) {
  constexpr std::string_view kJson = ".json";
  const bool json = text.size() >= kJson.size() && text.substr(text.size() - kJson.size()) == kJson;
  return json || text.substr(0, 1) == "/" || text.substr(0, 1) == "." || text.substr(0, 1) == "~";
}

}  // namespace

Result<Model> load_model(std::string_view path_or_name) {
  std::error_code ignored;
  const std::filesystem::path path{std::string(path_or_name)};
  if (!path_or_name.empty() && std::filesystem::is_directory(path, ignored)) {
    return read_model_config((path / "config.json").string());
  }
  if (!path_or_name.empty() && std::filesystem::exists(path, ignored)) {
    return read_model_config(path.string());
  }
  if (const Model* model = by_name(path_or_name)) return *model;
  constexpr std::string_view kOtherwise =
      "pass the model's config.json or its folder, or a name of `culprit list models`";
  if (looks_like_path(path_or_name)) {
    return Error{Error::Code::kCannotRead, "no such file or folder", std::string(path_or_name),
                 std::string(kOtherwise)};
  }
  std::vector<std::string> names = model_names();
  std::string hint = did_you_mean(path_or_name, names, "");
  if (hint.empty()) {  // nearness of the name alone, whoever owns it
    std::vector<std::string> bare;
    bare.reserve(names.size());
    for (const std::string& name : names) bare.emplace_back(without_owner(name));
    hint = did_you_mean(without_owner(path_or_name), bare, kOtherwise);
  }
  return Error{Error::Code::kUsage, fmt::format("unknown model \"{}\"", path_or_name), "", hint};
}

const std::vector<Model>& models() { return table(); }

Status add_model_table(std::string_view text, std::string_view path) {
  TRY(const Csv csv, Csv::parse(text, path));
  TRY(const Csv own, Csv::parse(kModelsCsv, "models.csv"));
  static const std::vector<std::string_view> kWords = {
      "model",       "architecture", "model_type",     "scoring_func",        "topk_method",
      "hidden_act",  "torch_dtype",  "norm_topk_prob", "tie_word_embeddings", "quant_algo",
      "unquantized", "unverified",   "sources",        "kv_cache_quant_algo"};
  CsvRules rules;
  for (const std::string& column : own.columns()) {
    rules.known.emplace_back(column);
    if (std::find(kWords.begin(), kWords.end(), column) == kWords.end())
      rules.numbers.emplace_back(column);
  }
  rules.required = {"model", "hidden_size", "num_hidden_layers", "num_attention_heads"};
  const Status right = check(csv, rules);
  if (!right.ok()) return right.error();
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    Model model = from_row(csv, row);
    model.table = path;
    const auto same = std::find_if(table().begin(), table().end(), [&](const Model& other) {
      return lower_case(other.name) == lower_case(model.name);
    });
    if (same == table().end()) {
      table().push_back(std::move(model));
    } else {
      *same = std::move(model);
    }
  }
  return Ok{};
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : table()) names.push_back(model.name);
  return names;
}

std::optional<bool> is_stated_pool(std::int64_t rows, const Deployment& deployment) {
  constexpr std::int64_t kLargestPage = 128;  // where no page size is stated
  if (!deployment.pool_tokens) return std::nullopt;
  const std::int64_t spare = rows - *deployment.pool_tokens;
  return deployment.page_size ? spare == *deployment.page_size || spare == 0
                              : spare >= 0 && spare <= kLargestPage;
}

std::int64_t kv_row_elements(const Model& model, const Deployment& deployment) {
  if (model.is_mla()) return model.kv_lora_rank + model.qk_rope_head_dim;
  if (model.q_lora_rank > 0) return 0;  // compressed attention of another design (DeepSeek-V4)
  const std::int64_t ranks =
      std::max<std::int64_t>(1, deployment.tp / std::max<std::int64_t>(1, deployment.attention_dp));
  // With more ranks than KV heads each head is held by several of them.
  const std::int64_t heads =
      model.kv_heads == 0 ? 0 : std::max<std::int64_t>(1, model.kv_heads / ranks);
  return heads * model.head_dim;
}

}  // namespace culprit::known
