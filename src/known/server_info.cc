// What a running server says of itself: SGLang's /get_server_info, vLLM's /server_info.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "known/config_json.h"
#include "known/models.h"

namespace culprit::known {
namespace {

constexpr std::string_view kPassInfo =
    "pass what SGLang's /get_server_info or vLLM's /server_info answers, as JSON";

const Json& child(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

const Json& first_of(const Json& list) {
  static const Json kNothing;
  return list.is_array() && !list.empty() ? list.front() : kNothing;
}

// "fp8_e4m3", "auto"; an unknown word is an error, never a silent default.
std::optional<Error> read_kv_dtype(const std::string& word, const std::string& path,
                                   Deployment& deployment) {
  if (word == "auto") return std::nullopt;
  const Dtype dtype = dtype_from_config(word);
  if (dtype == Dtype::kUnknown) {
    return Error{Error::Code::kBadInput, fmt::format("unknown KV cache type \"{}\"", word), path,
                 "known are auto, bfloat16, float16, fp8_e4m3, fp8_e5m2, nvfp4, int8"};
  }
  deployment.kv_dtype = dtype;
  return std::nullopt;
}

// One object of the answer. True in `known`: it held at least one field of a deployment.
std::optional<Error> read_part(const Json& part, const std::string& path, Deployment& deployment,
                               bool& known) {
  Fields fields(part, path);
  const auto set = [&](std::optional<std::int64_t> value, auto& target) {
    if (!value) return;
    known = true;
    target = *value;
  };
  set(fields.integer({"tp_size", "tensor_parallel_size"}), deployment.tp);
  set(fields.integer({"ep_size", "expert_parallel_size"}), deployment.ep);
  set(fields.integer({"page_size", "block_size"}), deployment.page_size);
  set(fields.integer({"max_total_num_tokens", "token_capacity"}), deployment.pool_tokens);
  if (const auto kv = fields.text({"kv_cache_dtype", "cache_dtype"})) {
    known = true;
    if (auto error = read_kv_dtype(*kv, path, deployment)) return error;
  }
  if (fields.flag("enable_dp_attention").value_or(false)) {
    set(fields.integer({"dp_size", "data_parallel_size"}), deployment.attention_dp);
  }
  if (fields.flag("enable_expert_parallel").value_or(false)) deployment.ep = deployment.tp;
  const auto blocks = fields.integer({"num_gpu_blocks"});
  if (blocks && deployment.page_size) {
    deployment.pool_tokens = *blocks * *deployment.page_size;
    deployment.page_size = 0;  // vLLM's pool has no page of padding
  }
  return fields.error();
}

// vLLM's default answer prints its config as text: "..., tensor_parallel_size=8,
// kv_cache_dtype=fp8, ...".
std::optional<Error> read_printed(std::string_view text, const std::string& path,
                                  Deployment& deployment, bool& known) {
  const auto value_of = [&](std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) return std::string_view{};
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find_first_of(",) "));
  };
  const std::string_view tp = value_of("tensor_parallel_size=");
  std::int64_t ranks = 0;
  const auto [end, code] = std::from_chars(tp.data(), tp.data() + tp.size(), ranks);
  if (code == std::errc{} && end == tp.data() + tp.size() && ranks > 0) {
    deployment.tp = ranks;
    known = true;
  }
  std::string_view kv = value_of("kv_cache_dtype=");
  if (kv.size() > 1 && kv.front() == '\'') kv = kv.substr(1, kv.size() - 2);
  if (kv.empty()) return std::nullopt;
  known = true;
  return read_kv_dtype(std::string(kv), path, deployment);
}

}  // namespace

Result<Deployment> load_server_info(std::string_view path_text) {
  const std::string path(path_text);
  TRY(const Json root, read_json_file(path, kPassInfo));
  const Json& state = first_of(child(root, "internal_states"));
  const Json& vllm = child(root, "vllm_config");
  const std::array<const Json*, 7> parts = {&root,
                                            &child(root, "server_args"),
                                            &state,
                                            &child(state, "memory_usage"),
                                            &vllm,
                                            &child(vllm, "parallel_config"),
                                            &child(vllm, "cache_config")};
  Deployment deployment;
  bool known = false;
  for (const Json* part : parts) {
    if (auto error = read_part(*part, path, deployment, known)) return *std::move(error);
  }
  if (vllm.is_string()) {
    const auto& printed = vllm.get_ref<const std::string&>();
    if (auto error = read_printed(printed, path, deployment, known)) return *std::move(error);
  }
  if (!known) {
    return Error{Error::Code::kBadInput,
                 "names no field of a deployment (tp_size, kv_cache_dtype, ...)", path,
                 std::string(kPassInfo)};
  }
  return deployment;
}

}  // namespace culprit::known
