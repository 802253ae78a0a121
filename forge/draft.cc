#include "forge/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "forge/kernels.h"
#include "forge/kernels_eager.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

constexpr std::string_view kModel = "models/llama.py";
constexpr std::string_view kBackend = "layers/attention/flashinfer_backend.py";
constexpr std::string_view kLinear = "layers/linear.py";
constexpr std::string_view kUnquant = "layers/quantization/unquant.py";
constexpr std::string_view kLogits = "layers/logits_processor.py";
constexpr std::string_view kOutput = "managers/scheduler_output_processor_mixin.py";

struct Module {
  std::string_view name;
  int line;
};
Module module_of(Role role) {
  switch (role) {
    case Role::kQkv:
      return {"QKVParallelLinear_@", 217};
    case Role::kOut:
      return {"RowParallelLinear_@", 227};
    case Role::kGateUp:
      return {"MergedColumnParallelLinear_@", 97};
    default:
      return {"RowParallelLinear_@", 99};
  }
}

bool in_mlp(Role role) {
  return role == Role::kGateUp || role == Role::kActivation || role == Role::kDown;
}

std::int64_t rows_of(const Geometry& model, std::int64_t prefill) {
  return prefill > 0 ? prefill : model.requests;
}

Call attention(const Geometry& model, const std::vector<Frame>& frames, std::int64_t prefill) {
  const std::int64_t live = prefill > 0 ? prefill : model.requests * model.context;
  const std::int64_t bytes = live * model.kv_width() * (model.fp8_pool ? 2 : 4);
  const double work = prefill > 0
                          ? 2.0 * static_cast<double>(prefill * prefill) *
                                static_cast<double>(model.shard(model.heads) * model.head_dim)
                          : 0;
  const Nanos by_work = std::llround(work / (model.gpu.tflops * 1'000 * 0.45));
  const std::string name = prefill > 0      ? kernel::gqa_prefill_attention()
                           : model.fp8_pool ? kernel::gqa_attention_fp8()
                                            : kernel::gqa_attention();
  Launch run =
      on_device(name, 1, 128, 168, 49'152, std::max(model.memory_time(bytes), by_work) + 3'000);
  // Keys are split so that the device is full once or twice.
  const std::int64_t kv_heads = model.shard(model.kv_heads);
  const std::int64_t splits = std::max<std::int64_t>(
      1, (std::int64_t{2} * model.gpu.device.sms + model.requests * kv_heads - 1) /
             (model.requests * kv_heads));
  run.grid = prefill > 0 ? std::array<int, 3>{static_cast<int>((prefill + 127) / 128), 1,
                                              static_cast<int>(kv_heads)}
                         : std::array<int, 3>{static_cast<int>(model.requests * splits), 1,
                                              static_cast<int>(kv_heads)};
  run.api = Api::kLaunchKernelExC;
  return bare(frames + Frame{prefill > 0 ? "flashinfer/prefill.py(2011): run"
                                         : "flashinfer/decode.py(1043): run",
                             fmt::format("{}{}:902", kTree, kBackend)},
              run, 14'000);
}

Call store(const Geometry& model, const std::vector<Frame>& frames, std::int64_t rows) {
  Launch store = on_device(
      "void store_kvcache<1024l>(unsigned char*, unsigned char*, unsigned char const*, unsigned "
      "char const*, long const*, long)",
      static_cast<int>(rows), 256, 26, 0, small_time(model, rows * model.kv_width() * 8));
  return bare(frames, store, 9'600);
}

// One shot over peer memory where messages are small.
Call fast_reduce(const Geometry& model, std::int64_t rows, int line) {
  Launch reduce =
      on_device(kernel::custom_all_reduce(), 36, 512, 40, 0, 5'200 + rows * model.hidden * 2 / 150);
  const std::vector<Frame> stack = {
      frame("distributed/communication_op.py", 11, "tensor_model_parallel_all_reduce", kLinear,
            line),
      frame("distributed/device_communicators/custom_all_reduce.py", 389, "custom_all_reduce",
            "distributed/parallel_state.py", 577)};
  Call call = bare(stack, reduce, 8'200);
  call.ops = {{0,
               "sgl_kernel::all_reduce",
               {scalar("139861443"), bf16({rows, model.hidden}), bf16({rows, model.hidden})},
               false}};
  return call;
}

Parts layer_parts(const Draft& draft, std::int64_t prefill) {
  const Geometry& model = draft.geometry;
  const std::int64_t rows = rows_of(model, prefill);
  const std::int64_t q_width = model.shard(model.heads) * model.head_dim;
  const auto add_norm = [&](Role role) {
    return norm(draft.frames_of(role), rows, model.hidden, true,
                {small_time(model, rows * model.hidden * 6), 6'800});
  };
  Parts parts = {
      {Role::kNorm, add_norm(Role::kNorm)},
      {Role::kQkv, gemm(draft, Role::kQkv, rows)},
      {Role::kRope, rope(draft.frames_of(Role::kRope), rows, model.shard(model.heads),
                         model.shard(model.kv_heads), model.head_dim,
                         {small_time(model, rows * (q_width + model.kv_width()) * 4), 7'400})},
      {Role::kStore, store(model, draft.frames_of(Role::kStore), rows)},
      {Role::kAttention, attention(model, draft.frames_of(Role::kAttention), prefill)},
      {Role::kOut, gemm(draft, Role::kOut, rows)}};
  if (model.world > 1) parts.push_back({Role::kReduce, fast_reduce(model, rows, 1498)});
  parts.push_back({Role::kNormMlp, add_norm(Role::kNormMlp)});
  parts.push_back({Role::kGateUp, gemm(draft, Role::kGateUp, rows)});
  parts.push_back(
      {Role::kActivation,
       sglang::silu_and_mul(draft.frames_of(Role::kActivation), rows, model.shard(model.width),
                            {small_time(model, rows * model.shard(model.width) * 6), 6'000})});
  parts.push_back({Role::kDown, gemm(draft, Role::kDown, rows)});
  if (model.world > 1) parts.push_back({Role::kReduce, fast_reduce(model, rows, 1498)});
  return parts;
}

Parts head_parts(const Draft& draft) {
  const Geometry& model = draft.geometry;
  Parts parts = {{Role::kHead, gemm(draft, Role::kHead, model.requests)}};
  if (model.world > 1) {
    const std::int64_t shard = model.shard(model.vocab);
    parts.push_back(
        {Role::kGather, all_gather(draft.frames_of(Role::kHead), model.requests, shard, model.world,
                                   {20'000 + model.requests * shard * 2 / 40, 14'000})});
  }
  parts.push_back(
      {Role::kLogits,
       to_dtype(draft.frames_of(Role::kLogits) +
                    builtin("method float of Tensor object at 0x7f3990d31e50", kLogits, 921),
                bf16({model.requests, model.vocab}), "float", 6,
                kernel::cast_copy(kernel::Element::kFloat), 512,
                {small_time(model, model.requests * model.vocab * 6), 9'000})});
  return parts;
}

Parts sample_parts(const Draft& draft) {
  const Geometry& model = draft.geometry;
  Call pick = elementwise(
      draft.frames_of(Role::kSample) +
          builtin("method argmax of type object at 0x7f3bc8a1e3c0", "layers/sampler.py", 128),
      "aten::argmax",
      {tensor("float", {model.requests, model.vocab}), scalar("-1"), scalar("False")},
      kernel::argmax(), model.requests, 1,
      {small_time(model, model.requests * model.vocab * 4) + 8'000, 12'000});
  pick.launches.front().block = {512, 1, 1};
  return {{Role::kSample, pick}};
}

Parts prepare_parts(const Draft& draft) {
  const Geometry& model = draft.geometry;
  constexpr std::string_view kBatch = "managers/schedule_batch.py";
  return {{Role::kInput,
           copy_to_device({builtin(kTensorTo, kBatch, 1938)}, model.requests, {1'300, 70'000})},
          {Role::kInput,
           elementwise(
               {builtin("method add_ of Tensor object at 0x7f3990d2d1f0", kBatch, 1961)},
               "aten::add_", {tensor("long int", {model.requests}), scalar("1"), scalar("1")},
               kernel::add_scalar(kernel::Element::kLong), model.requests, 1024, {1'700, 9'000})}};
}

// The tokens are copied while the next step runs: only the step before is waited for.
Parts result_parts(const Draft& draft) {
  const Geometry& model = draft.geometry;
  Call copy = copy_to_host({builtin(kTensorTo, kOutput, 357)}, model.requests, {1'600, 12'000});
  copy.launches.resize(1);
  copy.launches.front().name = "Memcpy DtoH (Device -> Pinned)";
  copy.launches.front().blocking = false;
  copy.launches.front().event = true;
  Launch wait;
  wait.api = Api::kEventSynchronize;
  wait.call = 1'900;
  return {{Role::kResult, copy},
          {Role::kWait,
           bare({builtin("method synchronize of Event object at 0x7f39fd3b1c40", kOutput, 349)},
                wait, 14'000)}};
}

Parts embed_parts(const Draft& draft, std::int64_t rows) {
  const Geometry& model = draft.geometry;
  Call gather = elementwise(
      {builtin("function embedding", "layers/vocab_parallel_embedding.py", 489)}, "aten::embedding",
      {bf16({model.shard(model.vocab), model.hidden}), tensor("long int", {rows}), scalar("-1"),
       scalar("False"), scalar("False")},
      kernel::gather_rows(), rows, 1, {small_time(model, rows * model.hidden * 4), 11'000});
  gather.launches.front().grid = {static_cast<int>(rows), 2, 1};
  gather.launches.front().block = {256, 1, 1};
  return {{Role::kEmbed, gather}};
}

// The library's choice: for one row a product of matrix and vector; else from Hopper on, tiles that fit the rows, as many blocks as multiprocessors; on
// older devices tiles of 64 rows, the sum split until the device is full.
void choose_tiles(const Geometry& model, std::int64_t rows, std::int64_t n, Launch& launch) {
  if (rows == 1) {
    launch.name = kernel::matrix_vector();
    launch.api = Api::kLaunchKernel;
    launch.grid = {static_cast<int>((n + 15) / 16), 1, 1};
    launch.shared = 0;
    return;
  }
  const std::int64_t wide = n >= 65'536 ? 192 : n >= 14'336 ? 128 : 64;
  if (model.gpu.device.major >= 9) {
    const std::int64_t tall = rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 32 ? 32 : 64;
    launch.name = rows > 64 ? "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN"
                            : fmt::format("nvjet_tst_{}x{}_64x{}_4x1_v_bz_TNT", wide, tall,
                                          wide > 64 ? 8 : 14);
    launch.grid = {model.gpu.device.sms, 1, 1};
    return;
  }
  const std::int64_t tile = wide > 128 ? 256 : wide;
  const std::int64_t tiles = (n + tile - 1) / tile * ((rows + 63) / 64);
  const std::int64_t splits =
      std::clamp<std::int64_t>(std::int64_t{2} * model.gpu.device.sms / tiles, 1, 8);
  launch.name = fmt::format("ampere_bf16_s16816gemm_bf16_{}x64_ldg8_f2f_stages_64x5_tn", tile);
  launch.grid = {static_cast<int>((n + tile - 1) / tile), static_cast<int>((rows + 63) / 64),
                 static_cast<int>(splits)};
}

template <class Visit>
void visit_calls(const Draft& draft, Visit visit) {
  for (const Parts* parts :
       {&draft.prepare, &draft.embed, &draft.layer, &draft.head, &draft.sample, &draft.results}) {
    const std::int64_t times = parts == &draft.layer ? draft.geometry.layers : 1;
    for (const Part& part : *parts) visit(part.call, times);
  }
}

Block block_of(const Parts& parts, std::vector<Frame> outer, bool in_graph) {
  Block block;
  block.in_graph = in_graph;
  block.outer = std::move(outer);
  for (const Part& part : parts) block.calls.push_back(part.call);
  return block;
}

std::vector<Frame> model_frames() {
  return in_forward(true) + frame(kModel, 497, "forward", "model_executor/model_runner.py", 2625);
}

}  // namespace

std::vector<Frame> Draft::frames_of(Role role) const {
  const std::vector<Frame> attention =
      module("LlamaAttention_@", kModel, 214, "forward", kModel, 292);
  switch (role) {
    case Role::kNorm:
    case Role::kNormMlp:
      return module("RMSNorm_@", "layers/layernorm.py", 155, "forward_cuda", kModel,
                    role == Role::kNorm ? 289 : 298);
    case Role::kRope:
      return attention + module("RotaryEmbedding_@", "layers/rotary_embedding/base.py", 214,
                                "forward_cuda", kModel, 221);
    case Role::kStore:
      return frames_of(Role::kAttention) +
             frame("mem_cache/memory_pool.py", 1043, "set_kv_buffer", kBackend, 889);
    case Role::kAttention:
      return attention +
             module("RadixAttention_@", "layers/radix_attention.py", 93, "forward", kModel, 224) +
             frame("layers/attention/base_attn_backend.py", 83, "forward",
                   "layers/radix_attention.py", 127) +
             frame(kBackend, 861, "forward_decode", "layers/attention/base_attn_backend.py", 92);
    case Role::kActivation:
      return module("LlamaMLP_@", kModel, 96, "forward", kModel, 301) +
             module("SiluAndMul_@", "layers/activation.py", 71, "forward_cuda", kModel, 98);
    case Role::kHead:
    case Role::kLogits:
      return module("LogitsProcessor_0", kLogits, 298, "forward", kModel, 514) +
             frame(kLogits, 842, "_get_logits", kLogits, 371);
    case Role::kSample:
      return module("Sampler_0", "layers/sampler.py", 92, "forward",
                    "model_executor/model_runner.py", 2921);
    default:
      return (in_mlp(role) ? module("LlamaMLP_@", kModel, 96, "forward", kModel, 301) : attention) +
             module(module_of(role).name, kLinear, 413, "forward", kModel, module_of(role).line) +
             frame(kUnquant, 130, "apply", kLinear, 427);
  }
}

Nanos small_time(const Geometry& geometry, std::int64_t bytes) {
  return std::max<Nanos>(2'400,
                         std::llround(static_cast<double>(bytes) / (geometry.gpu.gbps * 0.6)));
}

std::int64_t weight_rows(const Geometry& model, Role role) {
  switch (role) {
    case Role::kQkv:
      return model.qkv_width();
    case Role::kGateUp:
      return 2 * model.shard(model.width);
    case Role::kHead:
      return model.shard(model.vocab);
    default:
      return model.hidden;
  }
}

std::int64_t weight_columns(const Geometry& model, Role role) {
  if (role == Role::kOut) return model.shard(model.heads) * model.head_dim;
  return role == Role::kDown ? model.shard(model.width) : model.hidden;
}

Call gemm(const Draft& draft, Role role, std::int64_t rows) {
  const Geometry& model = draft.geometry;
  const std::int64_t n = weight_rows(model, role), k = weight_columns(model, role);
  const std::vector<Frame> stack =
      draft.frames_of(role) +
      (role == Role::kHead ? builtin("method matmul of type object at 0x7f3bc8a1e3c0", kLogits, 884)
                           : builtin("function linear", kUnquant, 141));
  if (model.awq && role != Role::kHead) {
    const Nanos time = model.memory_time(n * k / 2 + 2 * n * k / 128 + 2 * rows * (n + k)) + 1'500;
    Launch launch = on_device(kernel::marlin_gemm(), model.gpu.device.sms, 256, 255, 98'304,
                              std::max(time, model.gemm_time(rows, n, k) / 4));
    Call call = bare(stack, launch, 11'000);
    call.ops = {{0,
                 "sgl_kernel::gptq_marlin_gemm",
                 {bf16({rows, k}), Value{}, tensor("int", {k / 16, n * 2}), bf16({k / 128, n})},
                 false}};
    return call;
  }
  Call call = linear(stack, rows, n, k, "", 1, {model.gemm_time(rows, n, k), 9'200});
  choose_tiles(model, rows, n, call.launches.front());
  return call;
}

Draft make_draft(const Geometry& geometry, std::int64_t prefill) {
  Draft draft;
  draft.geometry = geometry;
  draft.prepare = prepare_parts(draft);
  draft.embed = embed_parts(draft, rows_of(geometry, prefill));
  draft.layer = layer_parts(draft, prefill);
  draft.head = head_parts(draft);
  draft.sample = sample_parts(draft);
  draft.results = result_parts(draft);
  draft.run.device = geometry.gpu.device;
  draft.run.world = geometry.world;
  draft.run.process = "sglang::scheduler";
  draft.run.root = process_root();
  balance(draft, geometry.host_share);
  return draft;
}

Nanos device_time(const Draft& draft) {
  Nanos sum = 0;
  visit_calls(draft, [&](const Call& call, std::int64_t times) {
    for (const Launch& launch : call.launches) {
      if (!launch.aside) sum += times * (launch.device + draft.run.gap);
    }
  });
  return sum;
}

Nanos host_time(const Draft& draft) {
  Nanos sum = 0;
  visit_calls(draft, [&](const Call& call, std::int64_t times) {
    sum += times * call.host * draft.run.host_scale / 1000;
    for (const Launch& launch : call.launches) sum += times * launch.call;
  });
  return sum;
}

void balance(Draft& draft, double share) {
  draft.run.host_scale = 1'000;
  Nanos work = 0;
  visit_calls(draft, [&](const Call& call, std::int64_t times) { work += times * call.host; });
  const Nanos calls = host_time(draft) - work;
  const double wanted =
      share * static_cast<double>(device_time(draft)) - static_cast<double>(calls);
  draft.run.host_scale =
      std::max(80, static_cast<int>(std::lround(1'000 * wanted / static_cast<double>(work))));
}

Step step_of(const Draft& draft, bool graphs) {
  Step step;
  step.batch = step.tokens = static_cast<int>(draft.geometry.requests);
  step.replay = graph_replay();
  if (draft.pieces) {
    step.replay.host = draft.piece_host * 1'000 / draft.run.host_scale;
    step.replay.graph_launch = draft.piece_launch;
  }
  const std::vector<Frame> model =
      model_frames() + module("LlamaModel_0", kModel, 356, "forward", kModel, 507);
  Block layers = block_of(draft.layer, model, graphs);
  layers.repeat = static_cast<int>(draft.geometry.layers);
  layers.own_graph = draft.pieces;
  layers.frames = module("LlamaDecoderLayer_@", kModel, 276, "forward", kModel, 379);
  step.blocks = {
      block_of(draft.prepare, in_prepare(), false),
      block_of(draft.embed,
               model + module("VocabParallelEmbedding_0", "layers/vocab_parallel_embedding.py", 468,
                              "forward", kModel, 365),
               graphs),
      std::move(layers),
      block_of(draft.head, model_frames(), graphs),
      block_of(draft.sample, in_sample(), false),
      block_of(draft.results, in_results(), false)};
  return step;
}

void before(Parts& parts, Role role, const std::vector<Call>& calls) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role != role) continue;
    for (const Call& call : calls) {
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i++), {Role::kAdded, call});
    }
  }
}

void after(Parts& parts, Role role, const std::vector<Call>& calls) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role != role) continue;
    for (const Call& call : calls) {
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(++i), {Role::kAdded, call});
    }
  }
}

void replace(Parts& parts, Role role, const std::vector<Call>& calls) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role != role) continue;
    const auto place = parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    Parts added;
    for (const Call& call : calls) added.push_back({role, call});
    parts.insert(place, added.begin(), added.end());
    i += calls.size() - 1;
  }
}

void change(Parts& parts, Role role, const std::function<void(Call&)>& how) {
  for (Part& part : parts) {
    if (part.role == role) how(part.call);
  }
}

}  // namespace culprit::forge
