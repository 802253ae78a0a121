#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "base/near.h"
#include "lab/files/gguf.h"
#include "lab/model/architecture.h"

namespace culprit::lab {
namespace {

constexpr auto kUnsupported = Error::Code::kUnsupported;

// The keys of an architecture, without its name in front. The first that is wrong becomes the error.
class Keys {
 public:
  Keys(const Gguf& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  std::int64_t integer(std::string_view key) {
    if (find(key) == nullptr) fail(key, "is missing", "the lab needs it for this architecture");
    return integer(key, 0);
  }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) {
    const GgufValue* const value = find(key);
    if (value == nullptr) return otherwise;
    const auto* const number = std::get_if<std::int64_t>(value);
    if (number != nullptr && *number >= 0) return *number;
    const bool list = std::holds_alternative<GgufList>(*value);
    fail(key, list ? "differs from layer to layer" : "is no size",
         "the lab runs models whose layers are alike", list ? kUnsupported : kBad);
    return otherwise;
  }
  double real(std::string_view key, double otherwise) {
    const GgufValue* const value = find(key);
    if (value == nullptr) return otherwise;
    const auto* const number = std::get_if<double>(value);
    if (number != nullptr && std::isfinite(*number)) return *number;
    fail(key, "is no number", "write the file again");
    return otherwise;
  }
  bool flag(std::string_view key, bool otherwise) {
    const GgufValue* const value = find(key);
    if (value == nullptr) return otherwise;
    if (const auto* const truth = std::get_if<bool>(value)) return *truth;
    fail(key, "is neither true nor false", "write the file again");
    return otherwise;
  }
  std::string text(std::string_view key, std::string_view otherwise) {
    const GgufValue* const value = find(key);
    if (value == nullptr) return std::string(otherwise);
    if (const auto* const text = std::get_if<std::string>(value)) return *text;
    fail(key, "is no text", "write the file again");
    return std::string(otherwise);
  }

  void fail(std::string_view key, std::string_view what, std::string hint,
            Error::Code code = kBad) {
    if (!error_)
      error_ = Error{code, fmt::format("\"{}{}\" {}", prefix_, key, what), file_.path(),
                     std::move(hint)};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr auto kBad = Error::Code::kBadInput;
  const GgufValue* find(std::string_view key) const {
    const auto found = file_.keys().find(prefix_ + std::string(key));
    return found == file_.keys().end() ? nullptr : &found->second;
  }

  const Gguf& file_;
  std::string prefix_;
  std::optional<Error> error_;
};

void read_mla(Keys& keys, ModelConfig& config) {
  config.kv_heads = config.heads;
  config.q_lora_rank = keys.integer("attention.q_lora_rank", 0);
  config.kv_lora_rank = keys.integer("attention.kv_lora_rank");
  config.rope_dim = keys.integer("rope.dimension_count");
  // Files from before the split of kv_b state a head's own widths under the plain keys.
  const bool split = keys.integer("attention.key_length_mla", 0) > 0;
  const std::int64_t key =
      keys.integer(split ? "attention.key_length_mla" : "attention.key_length");
  config.v_dim = keys.integer(split ? "attention.value_length_mla" : "attention.value_length");
  config.nope_dim = key - config.rope_dim;
}

void read_gqa(Keys& keys, ModelConfig& config) {
  config.kv_heads = keys.integer("attention.head_count_kv", config.heads);
  const std::int64_t even_share = config.heads > 0 ? config.hidden / config.heads : 0;
  config.head_dim = keys.integer("attention.key_length", even_share);
  if (keys.integer("attention.value_length", config.head_dim) != config.head_dim)
    keys.fail("attention.value_length", "differs from \"attention.key_length\"",
              "the lab runs models whose keys and values are alike", kUnsupported);
  if (keys.integer("rope.dimension_count", config.head_dim) != config.head_dim)
    keys.fail("rope.dimension_count", "is not the head's",
              "the lab turns whole heads of such a model", kUnsupported);
}

void read_experts(Keys& keys, ModelConfig& config, const Architecture& architecture) {
  Router& router = config.router;
  router.experts = keys.integer("expert_count", 0);
  if (router.experts == 0) return;
  if (!architecture.experts)
    return keys.fail("expert_count", "is not 0", "the lab runs this architecture without experts",
                     kUnsupported);
  const bool mla = config.family == Family::kMla;
  router.per_token = keys.integer("expert_used_count");
  router.shared = keys.integer("expert_shared_count", 0);
  router.groups = keys.integer("expert_group_count", 1);
  router.groups_kept = keys.integer("expert_group_used_count", 1);
  router.scale = keys.real("expert_weights_scale", 1);
  // llama.cpp normalises in every qwen3moe, whatever the file says.
  router.normalized = keys.flag("expert_weights_norm", false) || !mla;
  config.moe_intermediate = keys.integer("expert_feed_forward_length");
  config.dense_layers = keys.integer("leading_dense_block_count", 0);
  constexpr std::int64_t kSoftmax = 1, kSigmoid = 2;
  const std::int64_t gate = keys.integer("expert_gating_func", kSoftmax);
  router.scoring = gate == kSigmoid ? Scoring::kSigmoid : Scoring::kSoftmax;
  if (gate != kSoftmax && gate != kSigmoid)
    keys.fail("expert_gating_func", fmt::format("is {}", gate),
              "the lab routes by softmax (1) or sigmoid (2)", kUnsupported);
  // 0 is how some files say that there are no groups.
  if (router.groups == 0) router.groups = router.groups_kept = 1;
}

void read_indexer(Keys& keys, ModelConfig& config, RopeStyle rope) {
  config.indexer.heads = keys.integer("attention.indexer.head_count");
  config.indexer.head_dim = keys.integer("attention.indexer.key_length");
  config.indexer.top_k = keys.integer("attention.indexer.top_k");
  config.indexer.rope = rope;
}

void read_rope(Keys& keys, const Gguf& file, ModelConfig& config) {
  config.rope_theta = keys.real("rope.freq_base", config.rope_theta);
  const std::string type = keys.text("rope.scaling.type", "none");
  const double factor = keys.real("rope.scaling.factor", 1);
  if (type == "yarn") {
    Yarn yarn;
    yarn.factor = factor;
    yarn.original_positions = static_cast<double>(
        keys.integer("rope.scaling.original_context_length", config.max_positions));
    yarn.beta_fast = keys.real("rope.scaling.yarn_beta_fast", yarn.beta_fast);
    yarn.beta_slow = keys.real("rope.scaling.yarn_beta_slow", yarn.beta_slow);
    // The file holds a tenth of mscale_all_dim; llama.cpp takes mscale to be the same.
    const double tenth = keys.real("rope.scaling.yarn_log_multiplier", 0);
    yarn.mscale_all_dim = static_cast<double>(static_cast<float>(tenth) / 0.1F);
    if (tenth != 0) yarn.mscale = yarn.mscale_all_dim;
    config.yarn = yarn;
  } else if (type != "none" && factor != 1) {
    keys.fail("rope.scaling.type", fmt::format("is \"{}\"", type),
              "the lab computes plain and yarn positions", kUnsupported);
  }
  if (file.find("rope_freqs.weight") != nullptr)
    keys.fail("rope.scaling.type", "comes with \"rope_freqs.weight\"",
              "the lab computes plain and yarn positions", kUnsupported);
}

Result<const Architecture*> architecture_of(const Gguf& file) {
  const auto key = file.keys().find("general.architecture");
  const auto* const name =
      key == file.keys().end() ? nullptr : std::get_if<std::string>(&key->second);
  if (name == nullptr)
    return Error{Error::Code::kBadInput, "\"general.architecture\" is missing", file.path(),
                 "the file is not one of a model"};
  if (const Architecture* const found = architecture_of_gguf(*name)) return found;
  std::vector<std::string> known;
  for (const Architecture& each : architectures()) known.emplace_back(each.gguf);
  return Error{kUnsupported, fmt::format("architecture \"{}\" is none that the lab runs", *name),
               file.path(),
               did_you_mean(*name, known, "the lab runs deepseek2, glm-dsa, qwen3moe and llama")};
}

// llama.cpp cuts large models into files that belong together.
Status refuse_parts(const Gguf& file) {
  const auto found = file.keys().find("split.count");
  const auto* const count =
      found == file.keys().end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  if (count == nullptr || *count <= 1) return Ok{};
  return Error{kUnsupported, fmt::format("the file is one of {} parts", *count), file.path(),
               "merge them with llama-gguf-split --merge"};
}

std::int64_t vocabulary(Keys& keys, const Gguf& file) {
  const auto tokens = file.keys().find("tokenizer.ggml.tokens");
  const auto* const list =
      tokens == file.keys().end() ? nullptr : std::get_if<GgufList>(&tokens->second);
  if (list == nullptr) return keys.integer("vocab_size");
  return static_cast<std::int64_t>(list->count);  // beyond 2^63 below zero, which check() refuses
}

}  // namespace

Result<ModelConfig> config_from_gguf(const Gguf& file) {
  TRY([[maybe_unused]] const Ok whole, refuse_parts(file));
  TRY(const Architecture* const architecture, architecture_of(file));
  Keys keys(file, architecture->gguf);
  Keys tokenizer(file, "tokenizer.ggml");
  ModelConfig config;
  config.architecture = architecture->name;
  config.family = architecture->family;
  config.qk_norm = architecture->qk_norm;
  config.rope = architecture->gguf_rope;
  config.hidden = keys.integer("embedding_length");
  // Blocks for multi-token prediction come last and are not run.
  config.layers = keys.integer("block_count") - keys.integer("nextn_predict_layers", 0);
  config.vocab = vocabulary(keys, file);
  config.max_positions = keys.integer("context_length");
  config.heads = keys.integer("attention.head_count");
  config.intermediate = keys.integer("feed_forward_length", 0);
  config.rms_eps = keys.real("attention.layer_norm_rms_epsilon", config.rms_eps);
  config.family == Family::kMla ? read_mla(keys, config) : read_gqa(keys, config);
  read_experts(keys, config, *architecture);
  if (architecture->indexer) read_indexer(keys, config, architecture->indexer_rope);
  read_rope(keys, file, config);
  config.tied_embeddings = file.find("output.weight") == nullptr;
  config.router.biased =
      config.router.experts > 0 &&
      file.find(fmt::format("blk.{}.exp_probs_b.bias", config.dense_layers)) != nullptr;
  if (const std::int64_t eos = tokenizer.integer("eos_token_id", -1); eos >= 0)
    config.eos.push_back(eos);
  for (const Keys* each : {&keys, &tokenizer})
    if (each->error()) return *each->error();
  TRY([[maybe_unused]] const Ok sound, check(config, file.path()));
  return config;
}

}  // namespace culprit::lab
