#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "lab/files/gguf.h"
#include "lab/files/write.h"
#include "lab/model/architecture.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kAlignment = 32;
constexpr std::uint32_t kVersion = 3, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8,
                        kArray = 9;

// The part of the file before the data, built up in memory.
class Head {
 public:
  void key(std::string_view name, std::int64_t value) {
    begin(name, kU32);
    put(static_cast<std::uint32_t>(value));
  }
  void key(std::string_view name, double value) {
    begin(name, kF32);
    put(static_cast<float>(value));
  }
  void key(std::string_view name, bool value) {
    begin(name, kBool);
    put(static_cast<std::uint8_t>(value ? 1 : 0));
  }
  void key(std::string_view name, std::string_view value) {
    begin(name, kString);
    text(value);
  }
  void key(std::string_view name, const char* value) { key(name, std::string_view(value)); }
  void list(std::string_view name, std::uint32_t type, std::int64_t count) {
    begin(name, kArray);
    put(type);
    put(static_cast<std::uint64_t>(count));
  }
  template <class Value>
  void put(Value value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void text(std::string_view value) {
    put(std::uint64_t{value.size()});
    bytes_ += value;
  }

  std::uint64_t keys() const { return keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view name, std::uint32_t type) {
    text(name);
    put(type);
    ++keys_;
  }

  std::string bytes_;
  std::uint64_t keys_ = 0;
};

void put_mla(Head& head, const ModelConfig& c, const std::string& arch) {
  // llama.cpp runs MLA absorbed, as one KV head that is as wide as the latent row.
  head.key(arch + ".attention.head_count_kv", std::int64_t{1});
  if (c.q_lora_rank > 0) head.key(arch + ".attention.q_lora_rank", c.q_lora_rank);
  head.key(arch + ".attention.kv_lora_rank", c.kv_lora_rank);
  head.key(arch + ".attention.key_length", c.latent_dim());
  head.key(arch + ".attention.value_length", c.kv_lora_rank);
  head.key(arch + ".attention.key_length_mla", c.qk_dim());
  head.key(arch + ".attention.value_length_mla", c.v_dim);
  head.key(arch + ".rope.dimension_count", c.rope_dim);
  if (c.indexer.heads == 0) return;
  head.key(arch + ".attention.indexer.head_count", c.indexer.heads);
  head.key(arch + ".attention.indexer.key_length", c.indexer.head_dim);
  head.key(arch + ".attention.indexer.top_k", c.indexer.top_k);
}

void put_gqa(Head& head, const ModelConfig& c, const std::string& arch) {
  head.key(arch + ".attention.head_count_kv", c.kv_heads);
  head.key(arch + ".attention.key_length", c.head_dim);
  head.key(arch + ".attention.value_length", c.head_dim);
  head.key(arch + ".rope.dimension_count", c.head_dim);
}

void put_experts(Head& head, const ModelConfig& c, const std::string& arch) {
  const Router& r = c.router;
  if (r.experts == 0) return;
  constexpr std::int64_t kSoftmax = 1, kSigmoid = 2;
  head.key(arch + ".expert_count", r.experts);
  head.key(arch + ".expert_used_count", r.per_token);
  head.key(arch + ".expert_feed_forward_length", c.moe_intermediate);
  if (c.family == Family::kGqa) return;
  head.key(arch + ".expert_shared_count", r.shared);
  head.key(arch + ".expert_weights_scale", r.scale);
  head.key(arch + ".expert_weights_norm", r.normalized);
  head.key(arch + ".expert_gating_func", r.scoring == Scoring::kSigmoid ? kSigmoid : kSoftmax);
  head.key(arch + ".leading_dense_block_count", c.dense_layers);
  if (r.groups == r.groups_kept) return;  // llama.cpp asks for groups that are left out
  head.key(arch + ".expert_group_count", r.groups);
  head.key(arch + ".expert_group_used_count", r.groups_kept);
}

void put_rope(Head& head, const ModelConfig& c, const std::string& arch) {
  head.key(arch + ".rope.freq_base", c.rope_theta);
  if (!c.yarn) return;
  head.key(arch + ".rope.scaling.type", "yarn");
  head.key(arch + ".rope.scaling.factor", c.yarn->factor);
  head.key(arch + ".rope.scaling.original_context_length",
           static_cast<std::int64_t>(c.yarn->original_positions));
  head.key(arch + ".rope.scaling.yarn_beta_fast", c.yarn->beta_fast);
  head.key(arch + ".rope.scaling.yarn_beta_slow", c.yarn->beta_slow);
  if (c.yarn->mscale_all_dim != 0)
    head.key(arch + ".rope.scaling.yarn_log_multiplier", 0.1 * c.yarn->mscale_all_dim);
}

// The least that llama.cpp takes for a SentencePiece vocabulary: three special tokens, the 256 bytes,
// and names for the rest.
void put_tokenizer(Head& head, const ModelConfig& c) {
  constexpr std::int64_t kSpecial = 3, kBytes = 256;
  constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  head.key("tokenizer.ggml.model", "llama");
  head.list("tokenizer.ggml.tokens", kString, c.vocab);
  for (std::int64_t i = 0; i < c.vocab; ++i) {
    constexpr std::string_view kNames[kSpecial] = {"<unk>", "<s>", "</s>"};
    if (i < kSpecial)
      head.text(kNames[i]);
    else if (i < kSpecial + kBytes)
      head.text(fmt::format("<0x{:02X}>", i - kSpecial));
    else
      head.text(fmt::format("\u2581t{}", i));
  }
  head.list("tokenizer.ggml.scores", kF32, c.vocab);
  for (std::int64_t i = 0; i < c.vocab; ++i) head.put(-static_cast<float>(i));
  head.list("tokenizer.ggml.token_type", kI32, c.vocab);
  for (std::int64_t i = 0; i < c.vocab; ++i)
    head.put(i == 0 ? kUnknown : i < kSpecial ? kControl : i < kSpecial + kBytes ? kByte : kNormal);
  head.key("tokenizer.ggml.unknown_token_id", std::int64_t{0});
  head.key("tokenizer.ggml.bos_token_id", std::min<std::int64_t>(1, c.vocab - 1));
  if (!c.eos.empty()) head.key("tokenizer.ggml.eos_token_id", c.eos.front());
  head.key("tokenizer.ggml.add_bos_token", false);
}

Head keys_of(const ModelConfig& c) {
  const std::string arch(architecture_named(c.architecture)->gguf);
  Head head;
  head.key("general.architecture", std::string_view(arch));
  head.key("general.name", "culprit lab");
  head.key("general.alignment", kAlignment);
  head.key("general.quantization_version", std::int64_t{2});
  head.key(arch + ".vocab_size", c.vocab);
  head.key(arch + ".context_length", c.max_positions);
  head.key(arch + ".embedding_length", c.hidden);
  head.key(arch + ".block_count", c.layers);
  head.key(arch + ".feed_forward_length", c.intermediate);
  head.key(arch + ".attention.head_count", c.heads);
  head.key(arch + ".attention.layer_norm_rms_epsilon", c.rms_eps);
  c.family == Family::kMla ? put_mla(head, c, arch) : put_gqa(head, c, arch);
  put_experts(head, c, arch);
  put_rope(head, c, arch);
  put_tokenizer(head, c);
  return head;
}

void put_tensors(Head& head, std::span<const PlannedTensor> tensors) {
  std::int64_t offset = 0;
  for (const PlannedTensor& tensor : tensors) {
    head.text(tensor.name);
    head.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
      head.put(*extent);
    head.put(ggml_type_named(tensor.dtype)->id);
    head.put(offset);
    offset += (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

}  // namespace

Result<std::int64_t> write_gguf(const std::string& path, const ModelConfig& config,
                                const std::vector<PlannedTensor>& tensors) {
  Head head = keys_of(config);
  Head start;
  start.put(kVersion);
  start.put(std::uint64_t{tensors.size()});
  start.put(head.keys());
  put_tensors(head, tensors);
  TRY(OutputFile file, OutputFile::create(path));
  for (const std::string_view part : {std::string_view("GGUF"), std::string_view(start.bytes()),
                                      std::string_view(head.bytes())}) {
    TRY([[maybe_unused]] const Ok written, file.write(part));
  }
  TRY([[maybe_unused]] const Ok aligned, file.pad(kAlignment));
  for (const PlannedTensor& tensor : tensors) {
    TRY([[maybe_unused]] const Ok written, tensor.write(file));
    TRY([[maybe_unused]] const Ok padded, file.pad(kAlignment));
  }
  const std::int64_t bytes = file.written();
  TRY([[maybe_unused]] const Ok committed, file.commit());
  return bytes;
}

}  // namespace culprit::lab
