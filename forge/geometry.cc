#include "forge/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace culprit::forge {
namespace {

Gpu gpu(std::string_view name, std::int64_t memory_mib, int major, int minor, int sms, double gbps,
        double tflops, bool linked) {
  Gpu made;
  made.device.name = name;
  made.device.memory = memory_mib << 20;
  made.device.major = major;
  made.device.minor = minor;
  made.device.sms = sms;
  const bool server = major == 9 || major == 10;
  made.device.threads_per_sm = major == 12 || minor == 9 ? 1536 : 2048;
  made.device.shared_per_sm = server ? 233'472 : major == 8 && minor == 0 ? 167'936 : 102'400;
  made.device.shared_per_block_max = made.device.shared_per_sm - 1024;
  made.gbps = gbps;
  made.tflops = tflops;
  made.linked = linked;
  return made;
}

Gpu draw_gpu(Random& random, const Wish& wish) {
  const std::array linked{gpu("NVIDIA H100 80GB HBM3", 81'079, 9, 0, 132, 3'350, 989, true),
                          gpu("NVIDIA H200", 143'167, 9, 0, 132, 4'800, 989, true),
                          gpu("NVIDIA A100-SXM4-80GB", 81'153, 8, 0, 108, 2'039, 312, true),
                          gpu("NVIDIA B200", 182'642, 10, 0, 148, 8'000, 2'250, true)};
  const std::array unlinked{
      gpu("NVIDIA L40S", 45'589, 8, 9, 142, 864, 362, false),
      gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97'251, 12, 0, 188, 1'792, 500, false)};
  const bool board = wish.pcie || (!wish.linked && random.between(0, 3) == 0);
  if (board) return unlinked[random.next() % unlinked.size()];
  return linked[random.next() % linked.size()];
}

void draw_model(Random& random, Geometry& model) {
  model.layers = random.between(20, 44);
  model.hidden = random.one_of({2048, 2560, 3072, 3584, 4096, 5120, 6144, 8192});
  model.head_dim = model.hidden % 128 == 0 && random.between(0, 4) != 0 ? 128 : 64;
  model.heads = model.hidden / model.head_dim;
  model.kv_heads = random.one_of({4, 8, 8, 16});
  model.width = model.hidden * random.between(21, 28) / 8 / 512 * 512;
  model.vocab = random.one_of({32'000, 102'400, 128'256, 151'936, 152'064});
}

std::int64_t weights_of(const Geometry& model) {
  return model.layers * model.layer_weights() + 2 * model.vocab * model.hidden / model.world;
}

void draw_pool(Random& random, const Wish& wish, Geometry& model) {
  const double free_bytes = 0.86 * static_cast<double>(model.gpu.device.memory) -
                            static_cast<double>(weights_of(model)) * (model.awq ? 0.55 : 2.0);
  const double row =
      static_cast<double>(model.layers * 2 * model.kv_width() * (model.fp8_pool ? 1 : 2));
  const auto fits = static_cast<std::int64_t>(std::max(0.0, free_bytes / row));
  model.page = random.one_of({1, 16, 32, 64});
  model.pool_tokens =
      std::min<std::int64_t>(fits, random.between(120'000, 460'000)) / model.page * model.page;
  model.requests = random.between(wish.least_requests, wish.most_requests);
  model.context = random.between(wish.least_context, wish.most_context);
}

// Small models leave the device waiting for any host, large ones have no room for a pool.
bool plausible(const Geometry& model, const Wish& wish) {
  const bool divides = model.heads % model.kv_heads == 0 && model.kv_heads % model.world == 0 &&
                       model.vocab % model.world == 0 &&
                       model.width % (std::int64_t{model.world} * 64) == 0;
  const Nanos weights = model.memory_time(2 * model.layer_weights());
  const bool room =
      model.pool_tokens >= 60'000 && model.requests * model.context * 10 <= model.pool_tokens * 7;
  return divides && room && weights >= wish.least_layer && weights <= wish.most_layer &&
         model.vocab >= wish.least_vocab && model.vocab <= wish.most_vocab;
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::int64_t Random::between(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
}

double Random::share(double least, double most) {
  return least + (most - least) * static_cast<double>(next() >> 11) / 9007199254740992.0;
}

std::int64_t Random::one_of(std::initializer_list<std::int64_t> values) {
  return values.begin()[next() % values.size()];
}

std::int64_t Geometry::layer_weights() const {
  return hidden * qkv_width() + hidden * shard(heads) * head_dim + 3 * hidden * shard(width);
}

Nanos Geometry::memory_time(std::int64_t bytes) const {
  return std::llround(static_cast<double>(bytes) / (gpu.gbps * memory_reach));
}

Nanos Geometry::gemm_time(std::int64_t rows, std::int64_t n, std::int64_t k) const {
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(n * k);
  const Nanos by_work = std::llround(work / (gpu.tflops * 1'000 * 2 / 3));
  return std::max(memory_time(2 * (n * k + rows * (n + k))), by_work) + 900;
}

Geometry draw(Random& random, const Wish& wish) {
  Geometry model;
  do {
    model = Geometry();
    model.gpu = draw_gpu(random, wish);
    model.fp8_pool = wish.fp8_pool;
    model.awq = wish.awq;
    model.memory_reach = random.share(0.74, 0.88);
    model.host_share = random.share(0.45, 0.7);
    draw_model(random, model);
    do {
      model.world = static_cast<int>(random.one_of({1, 2, 4, 8}));
    } while (model.world < wish.least_world || model.world > wish.most_world);
    if (model.kv_heads < model.world) model.kv_heads = model.world;
    draw_pool(random, wish, model);
  } while (!plausible(model, wish));
  return model;
}

namespace {
std::string model_config(const Geometry& model) {
  const std::string quantization = model.awq ? R"(
  "quantization_config": {"bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": true},)"
                                             : "";
  return fmt::format(R"({{
  "architectures": [
    "LlamaForCausalLM"
  ],
  "attention_bias": false,
  "head_dim": {},
  "hidden_act": "silu",
  "hidden_size": {},
  "intermediate_size": {},
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": {},
  "num_hidden_layers": {},
  "num_key_value_heads": {},{}
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "vocab_size": {}
}}
)",
                     model.head_dim, model.hidden, model.width, model.heads, model.layers,
                     model.kv_heads, quantization, model.vocab);
}
}  // namespace

Configs drawn_configs(const Geometry& model, bool graph) {
  const std::string server = fmt::format(
      R"({{"model_path":"example/drawn","context_length":131072,"dtype":"auto","quantization":{},"kv_cache_dtype":"{}",)"
      R"("tp_size":{},"pp_size":1,"dp_size":1,"ep_size":1,"page_size":{},"attention_backend":"flashinfer",)"
      R"("disable_cuda_graph":{},"speculative_algorithm":null,"enable_dp_attention":false,"max_total_num_tokens":{},)"
      R"("version":"0.5.10"}})"
      "\n",
      model.awq ? "\"awq\"" : "null", model.fp8_pool ? "fp8_e4m3" : "auto", model.world, model.page,
      !graph, model.pool_tokens);
  return {model_config(model), "", server};
}

}  // namespace culprit::forge
