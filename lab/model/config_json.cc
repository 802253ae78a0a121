#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/near.h"
#include "lab/model/architecture.h"
#include "lab/model/config.h"
#include "lab/model/json.h"

namespace culprit::lab {
namespace {

constexpr auto kUnsupported = Error::Code::kUnsupported;

Result<const Architecture*> architecture_of(const Json& root, Fields& fields,
                                            const std::string& where) {
  const Json* const list = fields.find("architectures");
  std::string name;
  if (list != nullptr && list->is_array() && !list->empty() && list->front().is_string())
    name = list->front().get<std::string>();
  const std::string type = fields.text("model_type", "");
  if (fields.error()) return *fields.error();
  std::vector<std::string> known;
  for (const Architecture& each : architectures()) {
    if (each.name == name || (name.empty() && each.model_type == type)) return &each;
    known.emplace_back(each.name);
  }
  if (name.empty() && type.empty() && !root.contains("hidden_size"))
    return Error{Error::Code::kBadInput, "states no \"architectures\" and no \"hidden_size\"",
                 where, "pass the config.json that lies beside the weights"};
  return Error{
      kUnsupported,
      fmt::format("architecture \"{}\" is none that the lab runs", name.empty() ? type : name),
      where, did_you_mean(name, known, fmt::format("the lab runs {}", fmt::join(known, ", ")))};
}

void read_sizes(Fields& fields, ModelConfig& config) {
  config.hidden = fields.integer("hidden_size");
  config.layers = fields.integer("num_hidden_layers");
  config.vocab = fields.integer("vocab_size");
  config.max_positions = fields.integer("max_position_embeddings");
  config.heads = fields.integer("num_attention_heads");
  config.kv_heads = fields.integer("num_key_value_heads", config.heads);
  config.intermediate = fields.integer("intermediate_size", 0);
  config.rms_eps = fields.number("rms_norm_eps", config.rms_eps);
  config.tied_embeddings = fields.flag("tie_word_embeddings", false);
  if (config.family == Family::kGqa) {
    const std::int64_t even_share = config.heads > 0 ? config.hidden / config.heads : 0;
    config.head_dim = fields.integer("head_dim", even_share);
    return;
  }
  config.q_lora_rank = fields.integer("q_lora_rank", 0);
  config.kv_lora_rank = fields.integer("kv_lora_rank");
  config.nope_dim = fields.integer("qk_nope_head_dim");
  config.rope_dim = fields.integer("qk_rope_head_dim");
  config.v_dim = fields.integer("v_head_dim");
}

// Layers without experts must be the first ones: Qwen lists them.
void read_dense_layers(Fields& fields, ModelConfig& config) {
  config.dense_layers = fields.integer("first_k_dense_replace", 0);
  const Json* const dense = fields.find("mlp_only_layers");
  if (dense == nullptr || !dense->is_array()) return;
  for (const Json& layer : *dense)
    if (layer != Json(config.dense_layers++))
      fields.fail("mlp_only_layers", "names layers other than the first ones",
                  "the lab runs models whose dense layers come first", kUnsupported);
}

void read_experts(Fields& fields, ModelConfig& config) {
  Router& router = config.router;
  router.experts =
      fields.integer(config.family == Family::kMla ? "n_routed_experts" : "num_experts");
  router.per_token = fields.integer("num_experts_per_tok");
  router.shared = fields.integer("n_shared_experts", 0);
  config.moe_intermediate = fields.integer("moe_intermediate_size");
  router.normalized = fields.flag("norm_topk_prob", false);
  router.scale = fields.number("routed_scaling_factor", 1);
  router.groups = fields.integer("n_group", 1);
  router.groups_kept = fields.integer("topk_group", 1);
  const std::string scoring = fields.text("scoring_func", "softmax");
  if (scoring == "sigmoid")
    router.scoring = Scoring::kSigmoid;
  else if (scoring != "softmax")
    fields.fail("scoring_func", fmt::format("is \"{}\"", scoring),
                "the lab routes by sigmoid or softmax", kUnsupported);
  const std::string method = fields.text("topk_method", "greedy");
  router.biased = method == "noaux_tc";
  // Other methods differ in how a group scores; with one group there is nothing to differ in.
  if (!router.biased && method != "greedy" && router.groups != 1)
    fields.fail("topk_method", fmt::format("is \"{}\"", method),
                "the lab chooses groups by noaux_tc", kUnsupported);
  if (method == "greedy") router.groups = router.groups_kept = 1;
  for (const char* every : {"moe_layer_freq", "decoder_sparse_step"})
    if (fields.integer(every, 1) != 1)
      fields.fail(every, "is not 1", "the lab runs models with experts in every later layer",
                  kUnsupported);
  read_dense_layers(fields, config);
}

void read_indexer(Fields& fields, ModelConfig& config, RopeStyle usual) {
  config.indexer.heads = fields.integer("index_n_heads", 0);
  config.indexer.head_dim = fields.integer("index_head_dim", 0);
  config.indexer.top_k = fields.integer("index_topk", 0);
  const bool interleaved = fields.flag("indexer_rope_interleave", usual == RopeStyle::kInterleaved);
  config.indexer.rope = interleaved ? RopeStyle::kInterleaved : RopeStyle::kHalfSplit;
  constexpr const char* kEachLayer = "the lab runs models whose every layer has its own indexer";
  if (fields.integer("index_topk_freq", 1) != 1)
    fields.fail("index_topk_freq", "is not 1", kEachLayer, kUnsupported);
  const Json* const types = fields.find("indexer_types");
  if (types != nullptr && types->is_array())
    for (const Json& type : *types)
      if (type != Json("full"))
        fields.fail("indexer_types", "holds others than \"full\"", kEachLayer, kUnsupported);
}

// transformers moved rope_theta and rope_scaling into rope_parameters; older configs have them apart.
void read_rope(Fields& fields, ModelConfig& config, const std::string& where) {
  static const Json kNone = Json::object();
  const char* const key =
      fields.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* const found = fields.find(key);
  const Json& object = found != nullptr && found->is_object() ? *found : kNone;
  Fields rope(object, where);
  config.rope_theta = rope.number("rope_theta", fields.number("rope_theta", config.rope_theta));
  if (!fields.flag("rope_interleave", config.rope == RopeStyle::kInterleaved))
    config.rope = RopeStyle::kHalfSplit;
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "yarn") {
    Yarn yarn;
    yarn.factor = rope.number("factor", yarn.factor);
    yarn.original_positions =
        rope.number("original_max_position_embeddings", yarn.original_positions);
    yarn.beta_fast = rope.number("beta_fast", yarn.beta_fast);
    yarn.beta_slow = rope.number("beta_slow", yarn.beta_slow);
    yarn.mscale = rope.number("mscale", yarn.mscale);
    yarn.mscale_all_dim = rope.number("mscale_all_dim", yarn.mscale_all_dim);
    config.yarn = yarn;
  } else if (type != "default") {
    fields.fail(key, fmt::format("has the type \"{}\"", type),
                "the lab computes plain and yarn positions; remove the field to run without it",
                kUnsupported);
  }
  if (rope.error()) fields.fail(key, rope.error()->what, rope.error()->hint, rope.error()->code);
}

// What the lab has no code for must not be passed over in silence.
void refuse_the_rest(Fields& fields) {
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (fields.flag(bias, false))
      fields.fail(bias, "is true", "the lab's linear layers have no bias", kUnsupported);
  if (fields.text("hidden_act", "silu") != "silu")
    fields.fail("hidden_act", "is not \"silu\"", "the lab's MLPs are silu(gate) x up",
                kUnsupported);
  if (fields.flag("use_sliding_window", false))
    fields.fail("use_sliding_window", "is true", "the lab attends to the whole context",
                kUnsupported);
}

void read_eos(Fields& fields, ModelConfig& config) {
  const Json* const eos = fields.find("eos_token_id");
  if (eos == nullptr) return;
  const Json list = eos->is_array() ? *eos : Json::array({*eos});
  for (const Json& token : list) {
    if (token.is_number_unsigned() && token.get<std::uint64_t>() < (std::uint64_t{1} << 40))
      config.eos.push_back(token.get<std::int64_t>());
    else
      fields.fail("eos_token_id", "is no token id", "correct the field");
  }
}

}  // namespace

Result<ModelConfig> config_from_json(std::string_view text, const std::string& where) {
  TRY(const Json root, parse_json(text, where));
  Fields fields(root, where);
  TRY(const Architecture* const architecture, architecture_of(root, fields, where));
  ModelConfig config;
  config.architecture = architecture->name;
  config.family = architecture->family;
  config.qk_norm = architecture->qk_norm;
  config.rope = architecture->rope;
  read_sizes(fields, config);
  if (architecture->experts) read_experts(fields, config);
  if (architecture->indexer) read_indexer(fields, config, architecture->indexer_rope);
  read_rope(fields, config, where);
  read_eos(fields, config);
  refuse_the_rest(fields);
  if (fields.error()) return *fields.error();
  TRY(Ok{}, check(config, where));
  return config;
}

}  // namespace culprit::lab
