// GLM-5-NVFP4 on 8 x RTX PRO 6000 Blackwell, tensor parallel 8, SGLang with the FlashInfer MLA
// backend, FP8 KV pool, one stream of decode. The device is the bottleneck with and without the
// fault: about 20 ms of host work a step against 28 ms of device work besides the casts. Device
// times are those of 8 ranks.
//
// Planted (whole-pool-cast): every layer converts the whole pool, 495,552 slots x 576, to bf16
// before attention: 78 x 828 us = 64.6 of 93.2 ms. Healthy twin: the attention kernel reads FP8
// itself and takes a little longer.
#include <fmt/format.h>

#include "forge/configs.h"
#include "forge/kernels.h"
#include "forge/recipes.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

// The model as its config.json has it.
constexpr std::int64_t kHidden = 6144;
constexpr int kLayers = 78;
constexpr int kDenseLayers = 3;
constexpr std::int64_t kHeads = 64;
constexpr std::int64_t kQLoraRank = 2048;
constexpr std::int64_t kKvLoraRank = 512;
constexpr std::int64_t kRopeDim = 64;
constexpr std::int64_t kNopeDim = 192;
constexpr std::int64_t kValueDim = 256;
constexpr std::int64_t kDenseWidth = 12'288;
constexpr std::int64_t kExpertWidth = 2048;
constexpr std::int64_t kExperts = 256;
constexpr std::int64_t kTopK = 8;
constexpr std::int64_t kVocab = 154'880;
// The deployment.
constexpr std::int64_t kPoolTokens = 495'488;
constexpr std::int64_t kPage = 64;
constexpr std::int64_t kPoolRow = kKvLoraRank + kRopeDim;
constexpr int kDtypeBf16 = 15;  // torch's dtype numbers
constexpr int kDtypeFp8 = 24;
constexpr Cost kReduce = {47'000, 9'200};  // 12 kB over PCIe; 2 us more are waits for the last rank
constexpr std::string_view kGemv = "nvjet_sm120_tst_mma_64x32x64_8_16x32x64_tmaAB_alignCD4_bz_TNNN";
constexpr std::string_view kGemvSmall =
    "nvjet_sm120_tst_mma_32x32x128_6_16x16x128_tmaAB_alignCD4_bz_TNNN";

constexpr std::string_view kModel = "models/deepseek_v2.py";
constexpr std::string_view kMla = "models/deepseek_common/attention_forward_methods/forward_mla.py";
constexpr std::string_view kBackend = "layers/attention/flashinfer_mla_backend.py";
constexpr std::string_view kPool = "mem_cache/memory_pool.py";
constexpr std::string_view kLinear = "layers/linear.py";
constexpr std::string_view kUnquant = "layers/quantization/unquant.py";
constexpr std::string_view kModelOpt = "layers/quantization/modelopt_quant.py";
constexpr std::string_view kCommunicator = "layers/communicator.py";

struct Glm5 {
  int world;
  bool cast;  // the fault

  std::int64_t shard(std::int64_t whole) const { return whole / world; }

  std::vector<Frame> attention_module() const {
    return module("DeepseekV2AttentionMLA_@", kModel, 1262, "forward", kModel, 1886) +
           frame(kMla, 236, "forward_absorb_core", kModel, 1301);
  }
  std::vector<Frame> moe_module() const {
    return module("DeepseekV2MoE_@", kModel, 648, "forward", kModel, 1921) +
           frame(kModel, 689, "forward_normal", kModel, 664);
  }
  std::vector<Frame> linear_module(std::string_view kind, int line) const {
    return module(fmt::format("{}_@", kind), kLinear, 413, "forward", kMla, line) +
           frame(kUnquant, 130, "apply", kLinear, 427) + builtin("function linear", kUnquant, 141);
  }
  std::vector<Frame> norm_module(int line) const {
    return module("RMSNorm_@", "layers/layernorm.py", 155, "forward_cuda", kMla, line);
  }
  std::vector<Frame> backend() const {
    return attention_module() +
           module("RadixAttention_@", "layers/radix_attention.py", 93, "forward", kMla, 288) +
           frame("layers/attention/base_attn_backend.py", 83, "forward",
                 "layers/radix_attention.py", 127) +
           frame(kBackend, 595, "forward_decode", "layers/attention/base_attn_backend.py", 92);
  }
  std::vector<Frame> reduce_frames(std::string_view from, int line) const {
    return std::vector<Frame>{
        frame("distributed/communication_op.py", 11, "tensor_model_parallel_all_reduce", from,
              line),
        frame("distributed/parallel_state.py", 566, "all_reduce", "distributed/communication_op.py",
              13),
        Frame{"torch/distributed/distributed_c10d.py(2940): all_reduce",
              "/sgl-workspace/sglang/python/sglang/srt/distributed/parallel_state.py:642"},
        Frame{"<built-in method allreduce of ProcessGroup object at 0x7f3a2c1d9f30>",
              "torch/distributed/distributed_c10d.py:3007"}};
  }

  // FP4 x FP4 -> bf16, weights as ModelOpt packs them: two values a byte, one scale for 16.
  Call fp4_linear(std::vector<Frame> stack, std::int64_t n, std::int64_t k, int grid,
                  Cost cost) const {
    Launch launch = on_device(kernel::fp4_gemm(), grid, 384, 168, 90'112, cost.device);
    launch.api = Api::kLaunchKernelExC;
    return {std::move(stack),
            {{0,
              "sgl_kernel::cutlass_scaled_fp4_mm",
              {bf16({1, n}), tensor("unsigned char", {1, k / 2}),
               tensor("unsigned char", {n, k / 2}), tensor("c10::Float8_e4m3fn", {128, k / 16}),
               tensor("c10::Float8_e4m3fn", {n, k / 16}), tensor("float", {})},
              false}},
            {launch},
            cost.host};
  }
  Call quantize(std::vector<Frame> stack, std::int64_t k, Cost cost) const {
    Launch launch =
        on_device(kernel::fp4_quantize(), 128, k >= 4096 ? 384 : 32, 40, 0, cost.device);
    launch.api = Api::kLaunchKernelExC;
    return bare(std::move(stack) + frame(kModelOpt, 96, "fp4_quantize", kModelOpt, 1184), launch,
                cost.host);
  }

  std::vector<Call> project(bool first_layer) const;
  std::vector<Call> store() const;
  std::vector<Call> attend() const;
  std::vector<Call> output() const;
  std::vector<Call> dense_mlp() const;
  std::vector<Call> shared_expert() const;
  std::vector<Call> moe() const;
  Call routed_experts() const;
  Block layers(int first, int repeat, const std::vector<Call>& mlp) const;
  Block prepare() const;
  Block metadata() const;
  Block embed() const;
  Block head() const;
  Block sample() const;
  Block results() const;
};

std::vector<Call> Glm5::project(bool first_layer) const {
  const std::int64_t heads = shard(kHeads);
  const std::vector<Frame> mine = attention_module();
  const std::vector<Frame> prepare = {frame(kCommunicator, 412, "prepare_attn", kModel, 1874)};
  return {norm(prepare + norm_module(431), 1, kHidden, !first_layer, {4'100, 5'200}),
          linear(mine + linear_module("ReplicatedLinear", 118), 1, kQLoraRank + kPoolRow, kHidden,
                 kGemv, 82, {35'200, 7'600}),
          norm(mine + norm_module(131), 1, kQLoraRank, false, {2'800, 4'400}),
          norm(mine + norm_module(132), 1, kKvLoraRank, false, {2'500, 4'000}),
          linear(mine + linear_module("ColumnParallelLinear", 146), 1,
                 heads * (kNopeDim + kRopeDim), kQLoraRank, kGemvSmall, 64, {11'200, 7'300}),
          batched_matmul(mine + builtin(kTorchBmm, kMla, 172), heads, 1, kKvLoraRank, kNopeDim,
                         "nn", {6'800, 5'700}),
          rope(mine + module("RotaryEmbedding_@", "layers/rotary_embedding/base.py", 214,
                             "forward_cuda", kMla, 196),
               1, heads, 1, kRopeDim, {3'000, 5'800})};
}

// The new token's row goes to the pool as FP8: two small casts and the store.
std::vector<Call> Glm5::store() const {
  const std::vector<Frame> mine =
      backend() + frame(kPool, 1871, "set_mla_kv_buffer", kBackend, 612);
  const auto to_fp8 = [&](int line, std::int64_t width, Cost cost) {
    return to_dtype(mine + builtin(kTensorTo, kPool, line), bf16({1, 1, width}),
                    "c10::Float8_e4m3fn", kDtypeFp8, kernel::to_fp8_copy(), 1024, cost);
  };
  Launch put = on_device("set_mla_kv_buffer_kernel", 1, 128, 24, 0, 2'300);
  put.grid = {1, 5, 1};
  put.api = Api::kDriverLaunchEx;
  const Frame triton{"triton/runtime/jit.py(347): <lambda>",
                     fmt::format("{}{}:1781", kTree, kPool)};
  return {to_fp8(1882, kKvLoraRank, {2'000, 6'400}), to_fp8(1883, kRopeDim, {1'800, 5'900}),
          bare(mine + frame(kPool, 1760, "set_mla_kv_buffer_triton", kPool, 1892) + triton, put,
               6'100)};
}

std::vector<Call> Glm5::attend() const {
  std::vector<Call> calls;
  if (cast) {
    calls.push_back(to_dtype(backend() + builtin(kTensorTo, kBackend, 639),
                             tensor("c10::Float8_e4m3fn", {kPoolTokens + kPage, 1, kPoolRow}),
                             "c10::BFloat16", kDtypeBf16,
                             kernel::cast_copy(kernel::Element::kBFloat16), 512, {828'000, 8'300}));
  }
  const bool reads_fp8 = !cast;
  Launch run =
      on_device(kernel::mla_attention(reads_fp8), 1, 128, 255, 99'328, reads_fp8 ? 14'200 : 11'600);
  run.grid = {1, 188, 1};
  run.api = Api::kLaunchCooperative;
  calls.push_back(bare(
      backend() + Frame{"flashinfer/mla.py(417): run", fmt::format("{}{}:644", kTree, kBackend)},
      run, 10'400));
  return calls;
}

std::vector<Call> Glm5::output() const {
  const std::int64_t heads = shard(kHeads);
  const std::vector<Frame> mine = attention_module();
  const std::vector<Frame> prepare = {frame(kCommunicator, 587, "prepare_mlp", kModel, 1903)};
  return {batched_matmul(mine + builtin(kTorchBmm, kMla, 331), heads, 1, kValueDim, kKvLoraRank,
                         "tn", {7'200, 5'600}),
          linear(mine + linear_module("RowParallelLinear", 358), 1, kHidden, heads * kValueDim,
                 kGemv, 192, {29'000, 7'400}),
          all_reduce(reduce_frames(kCommunicator, 604), 1, kHidden, world, kReduce),
          norm(prepare + norm_module(612), 1, kHidden, true, {4'100, 5'000})};
}

std::vector<Call> Glm5::dense_mlp() const {
  const std::vector<Frame> mlp = module("DeepseekV2MLP_@", kModel, 259, "forward", kModel, 1921);
  const auto apply = [&](std::string_view kind, int line) {
    return mlp + module(fmt::format("{}_@", kind), kLinear, 413, "forward", kModel, line) +
           frame(kModelOpt, 1174, "apply", kLinear, 427);
  };
  const std::int64_t width = shard(kDenseWidth);
  return {
      quantize(apply("MergedColumnParallelLinear", 271), kHidden, {3'200, 4'600}),
      fp4_linear(apply("MergedColumnParallelLinear", 271), 2 * width, kHidden, 24, {30'000, 6'900}),
      sglang::silu_and_mul(
          mlp + module("SiluAndMul_@", "layers/activation.py", 71, "forward_cuda", kModel, 272), 1,
          width, {2'700, 4'400}),
      quantize(apply("RowParallelLinear", 273), width, {2'900, 4'500}),
      fp4_linear(apply("RowParallelLinear", 273), kHidden, width, 48, {22'000, 6'800}),
      all_reduce(reduce_frames(kLinear, 1498), 1, kHidden, world, kReduce)};
}

// One launch of the grouped-GEMM operator.
Launch moe_launch(std::string name, std::int64_t grid, int block, Nanos device) {
  Launch launch = on_device(std::move(name), static_cast<int>(grid), block, 32, 0, device);
  launch.api = Api::kLaunchKernelExC;
  launch.call = 1'700;
  return launch;
}

Launch grouped_gemm(bool finalize, Nanos device) {
  Launch launch = moe_launch(kernel::fp4_grouped_gemm(finalize), 1, 384, device);
  launch.grid = {1, 188, 1};
  launch.registers = 168;
  launch.shared = 99'328;
  return launch;
}

// Sort the token's experts, gather and quantize its row, two grouped GEMMs around the activation.
std::vector<Launch> routed_launches() {
  constexpr std::string_view kInput =
      "tensorrt_llm::kernels::cutlass_kernels::TmaWarpSpecializedGroupedGemmInput";
  constexpr std::string_view kActivation =
      "tensorrt_llm::kernels::cutlass_kernels::GLUAdaptor<cutlass::epilogue::thread::SiLu>";
  const std::string scaling = fmt::format("({}::FpXBlockScalingType)1", kInput);
  return {
      moe_launch(kernel::moe("blockExpertPrefixSumKernel", "32",
                             "int const*, int*, int*, long, long, int"),
                 kExperts, 32, 2'500),
      moe_launch(
          kernel::moe("globalExpertPrefixSumKernel", "256", "int const*, int*, long*, long, long"),
          1, 256, 1'800),
      moe_launch(kernel::moe("mergeExpertPrefixSumKernel", "",
                             "int const*, int const*, int const*, int*, int*, long"),
                 kExperts, 32, 2'000),
      moe_launch(kernel::moe("expandInputRowsKernel",
                             fmt::format("__nv_bfloat16, __nv_fp4_e2m1, {}, false, false", scaling),
                             "__nv_bfloat16 const*, __nv_fp4_e2m1*, float const*, float*, int "
                             "const*, long, long, long, float const*, bool, "
                             "long const*, unsigned char*, unsigned char const*, bool, long, "
                             "__nv_bfloat16 const*"),
                 kTopK, 256, 4'200),
      moe_launch(kernel::moe("computeStridesTmaWarpSpecializedKernel",
                             "__nv_fp4_e2m1, __nv_fp4_e2m1, __nv_bfloat16, __nv_bfloat16",
                             fmt::format("long const*, {0}, {0}, long, long", kInput)),
                 8, 32, 2'800),
      grouped_gemm(false, 34'500),
      moe_launch(kernel::moe("doActivationKernel",
                             fmt::format("__nv_fp4_e2m1, __nv_bfloat16, __nv_bfloat16, {}, {}",
                                         kActivation, scaling),
                             "__nv_fp4_e2m1*, __nv_bfloat16 const*, float const*, bool, "
                             "__nv_bfloat16 const*, bool, long const*, int, long, "
                             "float const*, bool, unsigned char*"),
                 kTopK, 256, 3'600),
      grouped_gemm(true, 24'000)};
}

Call Glm5::routed_experts() const {
  const std::int64_t width = shard(kExpertWidth);
  Call call;
  call.stack =
      moe_module() +
      module("FusedMoE_@", "layers/moe/fused_moe_triton/layer.py", 981, "forward", kModel, 702) +
      frame(kModelOpt, 1832, "apply", "layers/moe/fused_moe_triton/layer.py", 1024) +
      Frame{"flashinfer/fused_moe/core.py(861): cutlass_fused_moe",
            fmt::format("{}{}:1897", kTree, kModelOpt)} +
      Frame{"<built-in method run_moe of Module object at 0x7f39fd3b1c40>",
            "flashinfer/fused_moe/core.py:498"};
  call.ops = {
      {0,
       "flashinfer::cutlass_fused_moe",
       {bf16({1, kHidden}), bf16({1, kHidden}), tensor("int", {1, kTopK}),
        tensor("float", {1, kTopK}), tensor("unsigned char", {kExperts, 2 * width, kHidden / 2}),
        tensor("c10::Float8_e4m3fn", {kExperts, 2 * width, kHidden / 16}),
        tensor("unsigned char", {kExperts, kHidden, width / 2}),
        tensor("c10::Float8_e4m3fn", {kExperts, kHidden, width / 16}), scalar("15")},
       false}};
  call.launches = routed_launches();
  call.host = 19'000;
  return call;
}

std::vector<Call> Glm5::shared_expert() const {
  const std::vector<Frame> mine =
      moe_module() + module("DeepseekV2MLP_@", kModel, 259, "forward", kModel, 714);
  const auto apply = [&](std::string_view kind, int line) {
    return mine + module(fmt::format("{}_@", kind), kLinear, 413, "forward", kModel, line) +
           frame(kModelOpt, 1174, "apply", kLinear, 427);
  };
  const std::int64_t width = shard(kExpertWidth);
  return {
      quantize(apply("MergedColumnParallelLinear", 271), kHidden, {3'200, 4'400}),
      fp4_linear(apply("MergedColumnParallelLinear", 271), 2 * width, kHidden, 4, {11'400, 6'600}),
      sglang::silu_and_mul(
          mine + module("SiluAndMul_@", "layers/activation.py", 71, "forward_cuda", kModel, 272), 1,
          width, {2'400, 4'300}),
      quantize(apply("RowParallelLinear", 273), width, {2'800, 4'300}),
      fp4_linear(apply("RowParallelLinear", 273), kHidden, width, 48, {9'300, 6'500})};
}

std::vector<Call> Glm5::moe() const {
  using kernel::Element;
  const std::vector<Frame> mine = moe_module();
  std::vector<Call> calls = shared_expert();
  calls.push_back(linear(mine + module("MoEGate_@", kModel, 402, "forward", kModel, 697) +
                             builtin("function linear", kModel, 431),
                         1, kExperts, kHidden,
                         "nvjet_sm120_tst_mma_32x16x128_4_16x16x128_tmaAB_alignCD4_bz_splitK_TNNN",
                         32, {8'800, 6'700}));
  Call gate = bare(
      mine + module("TopK_@", "layers/moe/topk.py", 231, "forward_cuda", kModel, 700) +
          frame("layers/moe/topk.py", 718, "biased_grouped_topk_gpu", "layers/moe/topk.py", 901),
      on_device(kernel::router_gate(), 1, 192, 48, 0, 5'800), 7'200);
  gate.ops = {{0,
               "sgl_kernel::moe_fused_gate",
               {bf16({1, kExperts}), tensor("float", {kExperts}), scalar("1"), scalar("1"),
                scalar("8"), scalar("0"), scalar("2.5"), scalar("False")},
               false}};
  calls.push_back(gate);
  calls.push_back(routed_experts());
  calls.push_back(
      elementwise(mine + builtin("method mul_ of Tensor object at 0x7f3990d2ce90", kModel, 719),
                  "aten::mul_", {bf16({1, kHidden}), tensor("double", {})},
                  kernel::multiply_scalar(Element::kBFloat16), kHidden, 1024, {1'900, 5'200}));
  calls.push_back(
      elementwise(mine + builtin("method add_ of Tensor object at 0x7f3990d2d1f0", kModel, 722),
                  "aten::add_", {bf16({1, kHidden}), bf16({1, kHidden}), scalar("1")},
                  kernel::add(Element::kBFloat16), kHidden, 1024, {2'000, 4'900}));
  calls.push_back(all_reduce(reduce_frames(kModel, 729), 1, kHidden, world, kReduce));
  return calls;
}

std::vector<Frame> model_frames() {
  return in_forward(true) + frame(kModel, 2104, "forward", "model_executor/model_runner.py", 2625) +
         module("GlmMoeDsaModel_0", kModel, 1996, "forward", kModel, 2117);
}

Block Glm5::layers(int first, int repeat, const std::vector<Call>& mlp) const {
  Block block;
  block.repeat = repeat;
  block.first_layer = first;
  block.in_graph = true;
  block.outer = model_frames();
  block.frames = module("GlmMoeDsaDecoderLayer_@", kModel, 1858, "forward", kModel, 2049);
  for (const auto& part : {project(first == 0), store(), attend(), output(), mlp}) {
    block.calls.insert(block.calls.end(), part.begin(), part.end());
  }
  return block;
}

Block Glm5::prepare() const {
  constexpr std::string_view kBatch = "managers/schedule_batch.py";
  Block block;
  block.outer = in_prepare();
  block.calls = {
      copy_to_device({builtin(kTensorTo, kBatch, 1938)}, 1, {1'300, 210'000}),
      elementwise({builtin("method add_ of Tensor object at 0x7f3990d2d1f0", kBatch, 1961)},
                  "aten::add_", {tensor("long int", {1}), scalar("1"), scalar("1")},
                  kernel::add_scalar(kernel::Element::kLong), 1, 1024, {1'700, 9'000}),
      elementwise(
          {frame("mem_cache/memory_pool.py", 112, "write", kBatch, 1974)}, "aten::index_put_",
          {tensor("int", {4096, 202'756}), tensor("", {}), tensor("int", {1}), scalar("False")},
          kernel::index_put(), 1, 512, {2'600, 14'000})};
  return block;
}

// FlashInfer plans on the host: three blocking copies, before the step has put much on the device.
Block Glm5::metadata() const {
  constexpr std::string_view kPlan = "flashinfer/mla.py";
  Block block;
  block.outer = in_metadata() + frame(kBackend, 289, "init_forward_metadata",
                                      "model_executor/model_runner.py", 2603);
  const std::vector<Frame> update = {frame(kBackend, 671, "update", kBackend, 297),
                                     frame(kBackend, 695, "call_begin_forward", kBackend, 683)};
  const std::vector<Frame> plan =
      update + Frame{"flashinfer/mla.py(318): plan", fmt::format("{}{}:738", kTree, kBackend)};
  const auto to_cpu = [&](int line) {
    return plan + Frame{fmt::format("<built-in {}>", kTensorTo), fmt::format("{}:{}", kPlan, line)};
  };
  Launch indices = on_device("create_flashinfer_kv_indices_triton", 1, 128, 30, 0, 2'400);
  indices.api = Api::kDriverLaunchEx;
  Call upload =
      copy_to_device(plan + Frame{"<built-in method plan of Module object at 0x7f39fd3b20f0>",
                                  "flashinfer/mla.py:389"},
                     4'096, {2'100, 31'000});
  upload.ops.clear();
  block.calls = {
      to_dtype(update + builtin(kTensorTo, kBackend, 708), tensor("long int", {1}), "int", 3,
               kernel::cast_copy(kernel::Element::kInt), 512, {1'700, 26'000}),
      elementwise(update + builtin("method cumsum of type object at 0x7f3bc8a1e3c0", kBackend, 711),
                  "aten::cumsum", {tensor("int", {1}), scalar("0"), tensor("", {})}, kernel::scan(),
                  1, 1920, {2'900, 12'000}),
      bare(update + Frame{"triton/runtime/jit.py(347): <lambda>",
                          fmt::format("{}{}:720", kTree, kBackend)},
           indices, 19'000),
      copy_to_host(to_cpu(351), 2, {1'500, 16'000}),
      copy_to_host(to_cpu(352), 2, {1'500, 9'000}),
      copy_to_host(to_cpu(353), 1, {1'500, 9'000}),
      upload};
  return block;
}

Block Glm5::embed() const {
  constexpr std::string_view kEmbedding = "layers/vocab_parallel_embedding.py";
  Block block;
  block.in_graph = true;
  block.outer =
      model_frames() + module("VocabParallelEmbedding_0", kEmbedding, 468, "forward", kModel, 2021);
  Launch mask = on_device("triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0",
                          1, 32, 16, 0, 1'700);
  mask.api = Api::kDriverLaunchEx;
  Call rows = elementwise({builtin("function embedding", kEmbedding, 489)}, "aten::embedding",
                          {bf16({shard(kVocab), kHidden}), tensor("long int", {1}), scalar("-1"),
                           scalar("False"), scalar("False")},
                          kernel::gather_rows(), 1, 1, {3'100, 9'000});
  rows.launches.front().grid = {1, 3, 1};
  rows.launches.front().block = {256, 1, 1};
  block.calls = {
      bare({frame(kEmbedding, 131, "get_masked_input_and_mask", kEmbedding, 474)}, mask, 18'000),
      rows,
      all_reduce(reduce_frames(kEmbedding, 498), 1, kHidden, world, {kReduce.device, 11'000})};
  return block;
}

Block Glm5::head() const {
  constexpr std::string_view kLogits = "layers/logits_processor.py";
  Block block;
  block.in_graph = true;
  block.outer =
      in_forward(true) + frame(kModel, 2104, "forward", "model_executor/model_runner.py", 2625);
  const std::vector<Frame> logits =
      module("LogitsProcessor_0", kLogits, 298, "forward", kModel, 2123) +
      frame(kLogits, 842, "_get_logits", kLogits, 371);
  block.calls = {
      norm(module("GlmMoeDsaModel_0", kModel, 1996, "forward", kModel, 2117) + norm_module(2083), 1,
           kHidden, true, {4'100, 5'200}),
      linear(logits + builtin("method matmul of type object at 0x7f3bc8a1e3c0", kLogits, 884), 1,
             shard(kVocab), kHidden, kGemv, 303, {167'200, 9'300}),
      all_gather(logits + frame("distributed/communication_op.py", 16,
                                "tensor_model_parallel_all_gather", kLogits, 902),
                 1, shard(kVocab), world, {38'000, 14'000}),
      to_dtype(logits + builtin("method float of Tensor object at 0x7f3990d31e50", kLogits, 921),
               bf16({1, kVocab}), "float", 6, kernel::cast_copy(kernel::Element::kFloat), 512,
               {3'000, 8'800})};
  return block;
}

Block Glm5::sample() const {
  Block block;
  block.outer = in_sample();
  const std::vector<Frame> sampler = module("Sampler_0", "layers/sampler.py", 92, "forward",
                                            "model_executor/model_runner.py", 2921);
  Call pick = elementwise(
      sampler + builtin("method argmax of type object at 0x7f3bc8a1e3c0", "layers/sampler.py", 128),
      "aten::argmax", {tensor("float", {1, kVocab}), scalar("-1"), scalar("False")},
      kernel::argmax(), 1, 1, {14'000, 12'000});
  pick.launches.front().block = {512, 1, 1};
  pick.launches.front().shared = 8'208;
  block.calls = {pick};
  return block;
}

Block Glm5::results() const {
  constexpr std::string_view kOutput = "managers/scheduler_output_processor_mixin.py";
  Block block;
  block.outer = in_results();
  block.calls = {
      copy_to_host({builtin("method tolist of Tensor object at 0x7f3990d31e50", kOutput, 357)}, 1,
                   {1'400, 24'000})};
  return block;
}

}  // namespace

Run make_glm5(const Choice& choice) {
  const Glm5 model{choice.world == 0 ? 8 : choice.world, choice.has("whole-pool-cast")};
  Run run;
  run.name = model.cast ? "glm5" : "glm5-healthy";
  run.world = model.world;
  run.process = "sglang::scheduler_TP0";
  run.device.name = "NVIDIA RTX PRO 6000 Blackwell Server Edition";
  run.device.memory = std::int64_t{97'887} << 20;
  run.device.major = 12;
  run.device.sms = 188;
  run.device.threads_per_sm = 1536;
  run.device.shared_per_sm = 102'400;
  run.device.shared_per_block_max = 101'376;
  run.gap = 450;
  run.root = process_root();
  Step step;
  step.replay = graph_replay();
  step.blocks = {model.prepare(),
                 model.metadata(),
                 model.embed(),
                 model.layers(0, 1, model.dense_mlp()),
                 model.layers(1, kDenseLayers - 1, model.dense_mlp()),
                 model.layers(kDenseLayers, kLayers - kDenseLayers, model.moe()),
                 model.head(),
                 model.sample(),
                 model.results()};
  run.steps = {step};
  run.pattern = {0};
  if (choice.has("slow-host")) run.host_scale = 4'700;
  if (choice.has("straggler")) {
    run.late.rank = run.world - 1;
    run.late.kernels = 1'150;
  }
  run.configs = glm5_configs(model.world, choice.graph);
  return run;
}

}  // namespace culprit::forge
