// Faults whose time is a kernel's. Times: bytes over the rate such a kernel reaches, or as measured in
// the public reports that a fault stands for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "forge/kernels.h"
#include "forge/kernels_eager.h"
#include "forge/planted.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

constexpr std::string_view kModel = "models/llama.py";
constexpr std::string_view kBackend = "layers/attention/flashinfer_backend.py";
constexpr std::array kGemms{Role::kQkv, Role::kOut, Role::kGateUp, Role::kDown};

Nanos time_of(std::int64_t bytes, double bytes_per_ns) {
  return std::llround(static_cast<double>(bytes) / bytes_per_ns);
}

Wish any_batch(Random&) { return {}; }

// A backend that reads 16-bit keys converts the whole pool of each layer, keys and values.
void whole_pool_cast(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const Nanos time =
      time_of(model.pool_slots() * model.kv_width() * 3, model.gpu.gbps * random.share(0.45, 0.62));
  std::vector<Call> casts;
  for (const int line : {897, 898}) {
    casts.push_back(to_dtype(
        draft.frames_of(Role::kAttention) + builtin(kTensorTo, kBackend, line),
        tensor("c10::Float8_e4m3fn",
               {model.pool_slots(), model.shard(model.kv_heads), model.head_dim}),
        "c10::BFloat16", 15, kernel::cast_copy(kernel::Element::kBFloat16), 512, {time, 8'600}));
  }
  before(draft.layer, Role::kAttention, casts);
  change(draft.layer, Role::kAttention, [](Call& call) {
    call.launches.front().name = kernel::gqa_attention();
    call.launches.front().device = call.launches.front().device * 8 / 5;
  });
}

// Out-of-place index_put clones the pool of each layer before it writes a few rows: by a copy engine
// where keys lie apart from values, by a kernel where they alternate.
void whole_pool_copy(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const bool apart = random.coin();
  const Value pool = bf16({model.pool_slots(), model.shard(model.kv_heads), model.head_dim});
  const std::int64_t elements = model.pool_slots() * model.kv_width();
  const Nanos time =
      time_of(elements * 4, model.gpu.gbps * (apart ? random.share(0.8, 0.9) : 0.55));
  Launch copy = on_device(kernel::strided_copy_bf16(), static_cast<int>((elements + 511) / 512),
                          128, 28, 0, time);
  if (apart) {
    copy.api = Api::kMemcpyAsync;
    copy.name = "Memcpy DtoD (Device -> Device)";
    copy.bytes = elements * 2;
  }
  std::vector<Call> copies;
  for (const int line : {612, 613}) {
    copies.push_back({draft.frames_of(Role::kStore) +
                          builtin("method index_put of Tensor object at 0x7f3990d2d1f0",
                                  "mem_cache/memory_pool.py", line),
                      {{0, "aten::index_put", {pool, Value{}, pool, scalar("False")}, false},
                       {1, "aten::clone", {pool, Value{}}, false},
                       {2, "aten::copy_", {pool, pool, scalar("False")}, false}},
                      {copy},
                      8'900});
  }
  before(draft.layer, Role::kStore, copies);
}

Wish awq_weights(Random&) {
  Wish wish;
  wish.awq = true;
  wish.most_requests = 16;
  return wish;
}

// No kernel reads the packed weights: each is unpacked before its GEMM.
void weight_dequant(Scene& scene, Random&) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  Draft unpacked = draft;
  unpacked.geometry.awq = false;
  for (const Role role : kGemms) {
    const std::int64_t n = weight_rows(model, role), k = weight_columns(model, role);
    Call unpack = bare(draft.frames_of(role) +
                           builtin("method awq_dequantize of PyCapsule object at 0x7f3bd1c07e40",
                                   "layers/quantization/awq.py", 312),
                       on_device(kernel::awq_dequantize(), static_cast<int>(n * k / 8 / 256), 256,
                                 38, 0, time_of(n * k * 5 / 2, model.gpu.gbps * 0.55) + 1'500),
                       7'000);
    unpack.ops = {{0,
                   "sgl_kernel::awq_dequantize",
                   {tensor("int", {k, n / 8}), bf16({k / 128, n}), tensor("int", {k / 128, n / 8})},
                   false}};
    replace(draft.layer, role, {unpack, gemm(unpacked, role, model.requests)});
  }
}

Wish large_batch(Random&) {
  Wish wish;
  wish.least_requests = 32;
  wish.most_requests = 160;
  wish.most_context = 2'048;
  wish.most_layer = 320'000;
  return wish;
}

// Results in the layout of another kernel: each is copied to be read.
void layout_copy(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const std::int64_t heads = model.shard(model.heads);
  const Nanos time = random.between(4'200, 5'600) +
                     time_of(model.requests * heads * model.head_dim * 4, model.gpu.gbps * 0.4);
  const auto copy = [&](int line) {
    return flatten_copy(
        draft.frames_of(Role::kQkv) +
            builtin("method flatten of Tensor object at 0x7f3990d2ce90", kModel, line),
        heads, model.requests, model.head_dim, {time, 9'000});
  };
  after(draft.layer, Role::kAttention, {copy(226)});
  if (random.coin()) after(draft.layer, Role::kQkv, {copy(218)});
}

Wish quick_large_batch(Random&) {
  Wish wish;
  wish.least_requests = 24;
  wish.most_requests = 64;
  wish.most_context = 1'024;
  wish.most_layer = 150'000;
  return wish;
}

// A residual stream in fp32 between kernels of bf16: norm, rope and activation convert their input and
// output.
void batch_cast(Scene& scene, Random&) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const Cost cost = {small_time(model, model.requests * model.hidden * 6), 7'200};
  for (const Role role : {Role::kNorm, Role::kRope, Role::kNormMlp}) {
    const std::vector<Frame> stack = draft.frames_of(role);
    before(draft.layer, role,
           {to_dtype(stack + builtin(kTensorTo, "layers/layernorm.py", 188),
                     bf16({model.requests, model.hidden}), "float", 6,
                     kernel::cast_copy(kernel::Element::kFloat), 512, cost)});
    after(draft.layer, role,
          {to_dtype(stack + builtin(kTensorTo, "layers/layernorm.py", 203),
                    tensor("float", {model.requests, model.hidden}), "c10::BFloat16", 15,
                    kernel::cast_copy(kernel::Element::kBFloat16), 512, cost)});
  }
}

Wish one_long_request(Random&) {
  Wish wish;
  wish.most_requests = 2;
  wish.least_context = 24'000;
  wish.most_context = 60'000;
  wish.most_layer = 300'000;
  return wish;
}

// Too few splits of the keys: the bandwidth of a few multiprocessors.
void low_occupancy(Scene& scene, Random& random) {
  const Geometry& model = scene.draft.geometry;
  const std::int64_t kv_heads = model.shard(model.kv_heads);
  const std::int64_t room = model.gpu.device.sms * 2 / 5 / (model.requests * kv_heads);
  const std::int64_t splits = random.between(1, std::clamp<std::int64_t>(room, 1, 4));
  const std::int64_t blocks = std::max<std::int64_t>(2, model.requests * kv_heads * splits);
  change(scene.draft.layer, Role::kAttention, [&](Call& call) {
    Launch& run = call.launches.front();
    const std::int64_t bytes = model.requests * model.context * model.kv_width() * 4;
    const double rate = 0.58 * static_cast<double>(blocks) / model.gpu.device.sms;
    run.grid = {static_cast<int>(blocks / kv_heads), 1, static_cast<int>(kv_heads)};
    if (kv_heads == 1) run.grid = {static_cast<int>(blocks), 1, 1};
    run.device = time_of(bytes, model.gpu.gbps * rate) + 3'000;
  });
}

Wish one_request_large_vocabulary(Random&) {
  Wish wish;
  wish.most_requests = 1;
  wish.most_layer = 140'000;
  wish.least_vocab = 128'000;
  return wish;
}

Call top_p_scan(const Scene& scene, std::string name, int grid, Nanos time) {
  const Geometry& model = scene.draft.geometry;
  Call scan = elementwise(
      scene.draft.frames_of(Role::kSample) +
          builtin("method cumsum of type object at 0x7f3bc8a1e3c0", "layers/sampler.py", 301),
      "aten::cumsum", {tensor("float", {1, model.vocab}), scalar("-1"), Value{}}, std::move(name),
      grid, 1, {time, 12'000});
  scan.launches.front().block = {grid == 1 ? 16 : 128, grid == 1 ? 32 : 1, 1};
  return scan;
}

// The cumulative sum of one row is one block's work in the kernel for many rows.
void single_block(Scene& scene, Random& random) {
  const double ns_per_value = random.share(2.2, 3.2);
  const auto time =
      static_cast<Nanos>(ns_per_value * static_cast<double>(scene.draft.geometry.vocab));
  before(scene.draft.sample, Role::kSample,
         {top_p_scan(scene,
                     "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> "
                     ">(float*, float const*, unsigned int, unsigned int, unsigned int, float, "
                     "std::plus<float>)",
                     1, time)});
}
void many_blocks(Scene& scene, Random&) {
  const auto grid = static_cast<int>(scene.draft.geometry.vocab / 1'920 + 1);
  before(scene.draft.sample, Role::kSample, {top_p_scan(scene, kernel::scan(), grid, 6'400)});
}

Wish one_long_step(Random&) {
  Wish wish;
  wish.least_requests = 4;
  wish.most_requests = 16;
  wish.most_layer = 300'000;
  return wish;
}

// Each request's logits by a GEMM of their own: the head's weight is read as often.
void repeated_read(Scene& scene, Random&) {
  Draft& draft = scene.draft;
  const Call one = gemm(draft, Role::kHead, 1);
  replace(draft.head, Role::kHead,
          std::vector<Call>(static_cast<std::size_t>(draft.geometry.requests), one));
}

Wish few_rows(Random&) {
  Wish wish;
  wish.most_requests = 32;
  return wish;
}

// A kernel for other sizes: no tensor cores, or tiles that waste most of each.
void gemm_inefficient(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Role role = kGemms[static_cast<std::size_t>(random.one_of({0, 2, 2, 3}))];
  const std::string name = random.coin() ? kernel::old_gemm() : kernel::simt_gemm();
  const std::int64_t tiles = weight_rows(draft.geometry, role) / 128;
  const double slower = random.share(3.5, 6.5);
  change(draft.layer, role, [&](Call& call) {
    Launch& launch = call.launches.front();
    launch.name = name;
    launch.api = Api::kLaunchKernel;
    launch.grid = {static_cast<int>(std::max<std::int64_t>(tiles, draft.geometry.gpu.device.sms)),
                   1, 1};
    launch.block = {256, 1, 1};
    launch.device = static_cast<Nanos>(slower * static_cast<double>(launch.device));
  });
}

Wish few_live_rows(Random&) {
  Wish wish;
  wish.most_requests = 12;
  wish.most_layer = 300'000;
  return wish;
}

// A grid for the most tokens a step may have: blocks that find no row still start and end.
void oversized_grid(Scene& scene, Random& random) {
  const Geometry& model = scene.draft.geometry;
  const std::int64_t rows = random.one_of({4'096, 8'192, 16'384});
  constexpr std::array kRoles{Role::kActivation, Role::kStore, Role::kNormMlp};
  change(scene.draft.layer, kRoles[random.next() % kRoles.size()], [&](Call& call) {
    Launch& launch = call.launches.front();
    const int threads = launch.block[0] * launch.block[1] * launch.block[2];
    const int resident = std::min(24, model.gpu.device.threads_per_sm / threads);
    launch.grid[0] = static_cast<int>(rows);
    launch.device += rows * 1'100 / (std::int64_t{model.gpu.device.sms} * std::max(1, resident));
  });
}

// What fused kernels do in one pass, an operator at a time.
std::vector<Call> eager_norm(const Draft& draft, Role role) {
  const Geometry& model = draft.geometry;
  const std::int64_t rows = model.requests, width = model.hidden;
  const std::vector<Frame> stack =
      draft.frames_of(role) + Frame{"transformers/models/llama/modeling_llama.py(67): forward",
                                    fmt::format("{}layers/layernorm.py:171", kTree)};
  const Value wide = tensor("float", {rows, width}), thin = tensor("float", {rows, 1});
  const Nanos time = std::max<Nanos>(1'700, small_time(model, rows * width * 6) - 600);
  const auto op = [&](const char* name, std::vector<Value> inputs, std::string kernel,
                      std::int64_t elements) {
    return elementwise(stack, name, std::move(inputs), std::move(kernel), elements, 512,
                       {elements > rows ? time : 1'500, 4'000});
  };
  const Value half = bf16({rows, width});
  return {op("aten::add", {half, half, scalar("1")}, kernel::add(kernel::Element::kBFloat16),
             rows * width),
          to_dtype(stack, half, "float", 6, kernel::cast_copy(kernel::Element::kFloat), 512,
                   {time, 4'500}),
          op("aten::pow", {wide, scalar("2")}, kernel::pow_float(), rows * width),
          op("aten::mean", {wide, scalar("-1")}, kernel::mean_float(), rows),
          op("aten::add", {thin, scalar("1e-05"), scalar("1")}, kernel::add_scalar_float(), rows),
          op("aten::rsqrt", {thin}, kernel::rsqrt_float(), rows),
          op("aten::mul", {wide, thin}, kernel::multiply_float(), rows * width),
          to_dtype(stack, wide, "c10::BFloat16", 15, kernel::cast_copy(kernel::Element::kBFloat16),
                   512, {time, 4'500}),
          op("aten::mul", {bf16({width}), half}, kernel::multiply_bf16(), rows * width)};
}

std::vector<Call> eager_rope(const Draft& draft) {
  const Geometry& model = draft.geometry;
  std::vector<Call> calls;
  for (const std::int64_t heads : {model.shard(model.heads), model.shard(model.kv_heads)}) {
    const Value rows = bf16({model.requests, heads, model.head_dim});
    const Value half = bf16({model.requests, heads, model.head_dim / 2});
    const std::int64_t elements = model.requests * heads * model.head_dim;
    const auto op = [&](const char* name, std::vector<Value> inputs, std::string kernel) {
      calls.push_back(elementwise(draft.frames_of(Role::kRope), name, std::move(inputs),
                                  std::move(kernel), elements, 1024, {1'800, 4'000}));
    };
    op("aten::mul", {rows, rows}, kernel::multiply_bf16());
    op("aten::neg", {half}, kernel::negate_bf16());
    op("aten::cat", {Value{"TensorList", half.dims, ""}, scalar("-1")}, kernel::cat_copy());
    op("aten::mul", {rows, rows}, kernel::multiply_bf16());
    op("aten::add", {rows, rows, scalar("1")}, kernel::add(kernel::Element::kBFloat16));
  }
  return calls;
}

Wish quick_layers(Random&) {
  Wish wish;
  wish.most_requests = 16;
  wish.most_context = 2'048;
  wish.most_layer = 170'000;
  return wish;
}

void small_kernels(Scene& scene, Random&) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  replace(draft.layer, Role::kNorm, eager_norm(draft, Role::kNorm));
  replace(draft.layer, Role::kNormMlp, eager_norm(draft, Role::kNormMlp));
  replace(draft.layer, Role::kRope, eager_rope(draft));
  const Value gate = bf16({model.requests, model.shard(model.width)});
  const std::int64_t elements = model.requests * model.shard(model.width);
  const std::vector<Frame> stack = draft.frames_of(Role::kActivation);
  replace(draft.layer, Role::kActivation,
          {elementwise(stack, "aten::silu", {gate}, kernel::silu_bf16(), elements, 1024,
                       {1'900, 4'000}),
           elementwise(stack, "aten::mul", {gate, gate}, kernel::multiply_bf16(), elements, 1024,
                       {1'900, 4'000})});
  for (Part& part : draft.layer) {
    for (Launch& launch : part.call.launches) launch.call = 1'400;
  }
  balance(draft, 0.8);  // an engine in C++: else the host would be the cause
}

}  // namespace

std::span<const Planted> device_faults() {
  static const std::array kFaults{
      Planted{"whole-pool-cast", "an FP8 pool is converted as a whole in each layer",
              [](Random&) {
                Wish wish;
                wish.fp8_pool = true;
                return wish;
              },
              whole_pool_cast, nullptr},
      Planted{"whole-pool-copy", "the pool of each layer is cloned before a few rows are written",
              any_batch, whole_pool_copy, nullptr},
      Planted{"batch-cast", "activations go to fp32 and back around norm and rope",
              quick_large_batch, batch_cast, nullptr},
      Planted{"weight-dequant", "AWQ weights are unpacked before every GEMM", awq_weights,
              weight_dequant, nullptr},
      Planted{"layout-copy", "attention's input or output is flattened through a copy", large_batch,
              layout_copy, nullptr},
      Planted{"low-occupancy", "long contexts with too few splits of the keys", one_long_request,
              low_occupancy, nullptr},
      Planted{"single-block", "the cumulative sum of top-p sampling runs on one block",
              one_request_large_vocabulary, single_block, many_blocks},
      Planted{"repeated-read", "the head's weight is read once per request", one_long_step,
              repeated_read, nullptr},
      Planted{"gemm-inefficient", "one GEMM of each layer by a kernel for other sizes", few_rows,
              gemm_inefficient, nullptr},
      Planted{"small-kernels", "norm, rope and activation an operator at a time", quick_layers,
              small_kernels, nullptr},
      Planted{"oversized-grid", "a kernel of each layer is launched for the most tokens possible",
              few_live_rows, oversized_grid, nullptr}};
  return kFaults;
}

}  // namespace culprit::forge
