// Llama-3.1-8B in bf16 on one H100, SGLang with FlashInfer, eager: the dense runs.
// Times follow two rules: a GEMM takes its bytes at 85 % of 3350 GB/s or its work at 68 % of 989
// TFLOP/s, whichever is longer; attention reads its KV at 80 %. Host: 3.6 ms of work a decode step,
// well ahead of the device unless slowed.
//
// dense          16 requests of 2,048 tokens: 7.8 ms a step, healthy. Faults can be planted one by
// one. host-bound     one request and a slow host: launches bound the step, the device is busy a
// quarter of it. prefill-mixed  32 requests of 4,096 tokens; after every tenth decode step a
// prefill of 16,384 tokens. gaps           dense, and 0.5 ms of host work after the copy that ends
// each step: the copy's long wait costs nothing.
#include <fmt/format.h>

#include <algorithm>

#include "forge/configs.h"
#include "forge/kernels.h"
#include "forge/recipes.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

constexpr std::int64_t kHidden = 4096;
constexpr int kLayers = 32;
constexpr std::int64_t kHeads = 32;
constexpr std::int64_t kKvHeads = 8;
constexpr std::int64_t kHeadDim = 128;
constexpr std::int64_t kWidth = 14'336;
constexpr std::int64_t kVocab = 128'256;
constexpr std::int64_t kPoolSlots = 393'216 + 1;  // pages of one token: one slot of padding

constexpr std::string_view kModel = "models/llama.py";
constexpr std::string_view kBackend = "layers/attention/flashinfer_backend.py";
constexpr std::string_view kLinear = "layers/linear.py";
constexpr std::string_view kUnquant = "layers/quantization/unquant.py";

// Bytes per nanosecond and operations per nanosecond; the figures are in the head of this file.
constexpr std::int64_t kGemmBytesPerNs = 2'848;
constexpr std::int64_t kGemmOpsPerNs = 672'000;
constexpr std::int64_t kAttentionBytesPerNs = 2'680;
constexpr std::int64_t kAttentionOpsPerNs = 420'000;

Nanos gemm_time(std::int64_t rows, std::int64_t n, std::int64_t k) {
  const Nanos by_memory = 2 * (n * k + rows * (n + k)) / kGemmBytesPerNs;
  const Nanos by_work = 2 * rows * n * k / kGemmOpsPerNs;
  return std::max(by_memory, by_work) + 900;
}

// Small kernels: 2.6 us, or their bytes at 60 % of the memory's rate.
Nanos small_time(std::int64_t bytes) { return std::max<Nanos>(2'600, bytes / 2'010); }

struct Dense {
  bool decode = true;
  std::int64_t requests = 16;
  std::int64_t rows = 16;       // tokens computed in the step
  std::int64_t context = 2048;  // tokens of a request so far
  // Faults.
  bool pool_cast = false;       // an FP8 pool, cast whole before attention, keys and values
  bool layout_copy = false;     // attention's output is flattened through a copy
  bool weight_dequant = false;  // weights are unpacked to bf16 before every GEMM
  bool few_splits = false;      // attention on a fraction of the SMs

  std::vector<Frame> attention_module() const {
    return module("LlamaAttention_@", kModel, 214, "forward", kModel, 292);
  }
  std::vector<Frame> mlp_module() const {
    return module("LlamaMLP_@", kModel, 96, "forward", kModel, 301);
  }
  std::vector<Frame> backend() const {
    return attention_module() +
           module("RadixAttention_@", "layers/radix_attention.py", 93, "forward", kModel, 224) +
           frame("layers/attention/base_attn_backend.py", 83, "forward",
                 "layers/radix_attention.py", 127) +
           (decode ? frame(kBackend, 861, "forward_decode", "layers/attention/base_attn_backend.py",
                           92)
                   : frame(kBackend, 773, "forward_extend", "layers/attention/base_attn_backend.py",
                           104));
  }
  std::vector<Frame> norm_frames(int line) const {
    return module("RMSNorm_@", "layers/layernorm.py", 155, "forward_cuda", kModel, line);
  }

  void add_gemm(std::vector<Call>& calls, const std::vector<Frame>& owner, std::string_view kind,
                int line, std::int64_t n, std::int64_t k) const;
  std::vector<Call> attention(bool first_layer) const;
  std::vector<Call> mlp() const;
  Block layers(int first, int repeat) const;
  Block prepare(Nanos host) const;
  Block head() const;
  Block sample() const;
  Block results(Nanos host_after) const;
  Step step(Nanos host_after = 0) const;
};

void Dense::add_gemm(std::vector<Call>& calls, const std::vector<Frame>& owner,
                     std::string_view kind, int line, std::int64_t n, std::int64_t k) const {
  const std::vector<Frame> apply =
      owner + module(fmt::format("{}_@", kind), kLinear, 413, "forward", kModel, line) +
      frame(kUnquant, 130, "apply", kLinear, 427);
  if (weight_dequant) {
    // Four bits in, sixteen out, for every weight, whatever the batch.
    Launch unpack = on_device(
        "void awq_dequantize<__nv_bfloat16>(int*, __nv_bfloat16*, int*, __nv_bfloat16*, int, int, "
        "int)",
        static_cast<int>(n * k / 8 / 256), 256, 38, 0, n * k * 5 / 2 / 1'900);
    Call call = bare(owner + builtin("method awq_dequantize of PyCapsule object at 0x7f3bd1c07e40",
                                     "layers/quantization/awq.py", 312),
                     unpack, 7'000);
    call.ops = {{0,
                 "sgl_kernel::awq_dequantize",
                 {tensor("int", {k, n / 8}), bf16({k / 128, n}), tensor("int", {k / 128, n / 8})},
                 false}};
    calls.push_back(call);
  }
  const std::string_view name = rows > 64 ? "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN"
                                          : "nvjet_tst_64x16_64x14_4x1_v_bz_TNT";
  calls.push_back(linear(apply + builtin("function linear", kUnquant, 141), rows, n, k, name, 132,
                         {gemm_time(rows, n, k), 9'200}));
}

std::vector<Call> Dense::attention(bool first_layer) const {
  const std::int64_t kv_width = kKvHeads * kHeadDim;
  std::vector<Call> calls = {
      norm(norm_frames(289), rows, kHidden, !first_layer, {small_time(rows * kHidden * 6), 6'800})};
  add_gemm(calls, attention_module(), "QKVParallelLinear", 217, kHidden + 2 * kv_width, kHidden);
  calls.push_back(
      rope(attention_module() + module("RotaryEmbedding_@", "layers/rotary_embedding/base.py", 214,
                                       "forward_cuda", kModel, 221),
           rows, kHeads, kKvHeads, kHeadDim, {small_time(rows * (kHidden + kv_width) * 4), 7'400}));
  Launch store = on_device(
      "void store_kvcache<1024l>(unsigned char*, unsigned char*, unsigned char const*, unsigned "
      "char const*, long const*, long)",
      static_cast<int>(rows), 256, 26, 0, small_time(rows * kv_width * 8));
  calls.push_back(
      bare(backend() + frame("mem_cache/memory_pool.py", 1043, "set_kv_buffer", kBackend, 889),
           store, 9'600));
  if (pool_cast) {
    for (const int line : {897, 898}) {
      calls.push_back(to_dtype(backend() + builtin(kTensorTo, kBackend, line),
                               tensor("c10::Float8_e4m3fn", {kPoolSlots, kKvHeads, kHeadDim}),
                               "c10::BFloat16", 15, kernel::cast_copy(kernel::Element::kBFloat16),
                               512, {kPoolSlots * kv_width * 3 / 1'640, 8'600}));
    }
  }
  const std::int64_t kv_bytes = requests * context * kv_width * 2 * 2;
  const Nanos by_work =
      decode ? 0 : 2 * rows * context * kHeads * kHeadDim * 2 / 2 / kAttentionOpsPerNs;
  Launch run = on_device(decode ? kernel::gqa_attention() : kernel::gqa_prefill_attention(), 1, 128,
                         168, 49'152, std::max(kv_bytes / kAttentionBytesPerNs, by_work) + 3'000);
  run.grid = {decode ? static_cast<int>(requests * 8) : static_cast<int>(rows / 128),
              decode ? 1 : static_cast<int>(kKvHeads), decode ? static_cast<int>(kKvHeads) : 1};
  if (few_splits) {
    run.grid[0] = 3;
    run.device *= 6;
  }
  run.api = Api::kLaunchKernelExC;
  calls.push_back(bare(
      backend() +
          Frame{decode ? "flashinfer/decode.py(1043): run" : "flashinfer/prefill.py(2011): run",
                fmt::format("{}{}:{}", kTree, kBackend, decode ? 902 : 811)},
      run, 14'000));
  if (layout_copy) {
    calls.push_back(
        flatten_copy(attention_module() +
                         builtin("method flatten of Tensor object at 0x7f3990d2ce90", kModel, 226),
                     kHeads, rows, kHeadDim, {5'000, 9'000}));
  }
  add_gemm(calls, attention_module(), "RowParallelLinear", 227, kHidden, kHidden);
  calls.push_back(
      norm(norm_frames(298), rows, kHidden, true, {small_time(rows * kHidden * 6), 6'600}));
  return calls;
}

std::vector<Call> Dense::mlp() const {
  std::vector<Call> calls;
  add_gemm(calls, mlp_module(), "MergedColumnParallelLinear", 97, 2 * kWidth, kHidden);
  calls.push_back(sglang::silu_and_mul(
      mlp_module() + module("SiluAndMul_@", "layers/activation.py", 71, "forward_cuda", kModel, 98),
      rows, kWidth, {small_time(rows * kWidth * 6), 6'000}));
  add_gemm(calls, mlp_module(), "RowParallelLinear", 99, kHidden, kWidth);
  return calls;
}

std::vector<Frame> model_frames(bool decode) {
  return in_forward(decode) +
         frame(kModel, 497, "forward", "model_executor/model_runner.py", decode ? 2625 : 2668) +
         module("LlamaModel_0", kModel, 356, "forward", kModel, 507);
}

Block Dense::layers(int first, int repeat) const {
  Block block;
  block.repeat = repeat;
  block.first_layer = first;
  block.in_graph = decode;
  block.outer = model_frames(decode);
  block.frames = module("LlamaDecoderLayer_@", kModel, 276, "forward", kModel, 379);
  for (const auto& part : {attention(first == 0), mlp()})
    block.calls.insert(block.calls.end(), part.begin(), part.end());
  return block;
}

Block Dense::prepare(Nanos host) const {
  constexpr std::string_view kBatch = "managers/schedule_batch.py";
  Block block;
  block.outer = in_prepare();
  block.calls = {
      copy_to_device({builtin(kTensorTo, kBatch, 1938)}, rows, {1'300, host}),
      elementwise({builtin("method add_ of Tensor object at 0x7f3990d2d1f0", kBatch, 1961)},
                  "aten::add_", {tensor("long int", {requests}), scalar("1"), scalar("1")},
                  kernel::add_scalar(kernel::Element::kLong), requests, 1024, {1'700, 9'000})};
  return block;
}

Block Dense::head() const {
  constexpr std::string_view kLogits = "layers/logits_processor.py";
  Block block;
  block.in_graph = decode;
  block.outer = in_forward(decode) + frame(kModel, 497, "forward", "model_executor/model_runner.py",
                                           decode ? 2625 : 2668);
  const std::vector<Frame> logits =
      module("LogitsProcessor_0", kLogits, 298, "forward", kModel, 514) +
      frame(kLogits, 842, "_get_logits", kLogits, 371);
  block.calls = {
      norm(module("LlamaModel_0", kModel, 356, "forward", kModel, 507) + norm_frames(401), rows,
           kHidden, true, {small_time(rows * kHidden * 6), 6'800}),
      linear(logits + builtin("method matmul of type object at 0x7f3bc8a1e3c0", kLogits, 884),
             requests, kVocab, kHidden, "nvjet_tst_192x16_64x8_4x1_v_bz_TNT", 132,
             {gemm_time(requests, kVocab, kHidden), 10'500}),
      to_dtype(logits + builtin("method float of Tensor object at 0x7f3990d31e50", kLogits, 921),
               bf16({requests, kVocab}), "float", 6, kernel::cast_copy(kernel::Element::kFloat),
               512, {small_time(requests * kVocab * 6), 9'000})};
  return block;
}

Block Dense::sample() const {
  Block block;
  block.outer = in_sample();
  const std::vector<Frame> sampler = module("Sampler_0", "layers/sampler.py", 92, "forward",
                                            "model_executor/model_runner.py", 2921);
  Call pick = elementwise(
      sampler + builtin("method argmax of type object at 0x7f3bc8a1e3c0", "layers/sampler.py", 128),
      "aten::argmax", {tensor("float", {requests, kVocab}), scalar("-1"), scalar("False")},
      kernel::argmax(), requests, 1, {small_time(requests * kVocab * 4) + 8'000, 12'000});
  pick.launches.front().block = {512, 1, 1};
  block.calls = {pick};
  return block;
}

Block Dense::results(Nanos host_after) const {
  constexpr std::string_view kOutput = "managers/scheduler_output_processor_mixin.py";
  Block block;
  block.outer = in_results();
  block.calls = {
      copy_to_host({builtin("method tolist of Tensor object at 0x7f3990d31e50", kOutput, 357)},
                   requests, {1'600, 24'000})};
  if (host_after > 0) {
    Call stream;
    stream.stack = {frame(kOutput, 812, "stream_output", kOutput, 418),
                    frame(kOutput, 829, "stream_output_generation", kOutput, 821)};
    stream.host = host_after;
    block.calls.push_back(stream);
  }
  return block;
}

Step Dense::step(Nanos host_after) const {
  Step step;
  step.kind = decode ? "DECODE" : "EXTEND";
  step.batch = static_cast<int>(requests);
  step.tokens = static_cast<int>(rows);
  step.replay = graph_replay();
  Call rows_of = elementwise(
      {builtin("function embedding", "layers/vocab_parallel_embedding.py", 489)}, "aten::embedding",
      {bf16({kVocab, kHidden}), tensor("long int", {rows}), scalar("-1"), scalar("False"),
       scalar("False")},
      kernel::gather_rows(), rows, 1, {small_time(rows * kHidden * 4), 11'000});
  rows_of.launches.front().grid = {static_cast<int>(rows), 2, 1};
  rows_of.launches.front().block = {256, 1, 1};
  Block embed;
  embed.in_graph = decode;
  embed.outer = model_frames(decode) + module("VocabParallelEmbedding_0",
                                              "layers/vocab_parallel_embedding.py", 468, "forward",
                                              kModel, 365);
  embed.calls = {rows_of};
  step.blocks = {prepare(70'000), embed,    layers(0, 1),       layers(1, kLayers - 1),
                 head(),          sample(), results(host_after)};
  return step;
}

Run base_run(std::string name, std::vector<Step> steps, const Choice& choice) {
  Run run;
  run.name = std::move(name);
  run.process = "sglang::scheduler";
  run.device.name = "NVIDIA H100 80GB HBM3";
  run.device.memory = 85'018'279'936;
  run.device.major = 9;
  run.device.sms = 132;
  run.device.shared_per_sm = 233'472;
  run.device.shared_per_block_max = 232'448;
  run.gap = 500;
  run.root = process_root();
  run.steps = std::move(steps);
  run.pattern = {0};
  run.configs = llama_configs(choice.graph);
  return run;
}

// A step that compiles a kernel for a shape it has not seen: 1.9 s of host work in Triton, nothing
// on the device.
Step with_stall(Step step) {
  Call compile;
  compile.stack = {
      {"triton/runtime/jit.py(571): run", fmt::format("{}layers/sampler.py:133", kTree)},
      {"triton/compiler/compiler.py(226): compile", "triton/runtime/jit.py:634"},
      {"triton/backends/nvidia/compiler.py(341): make_cubin", "triton/compiler/compiler.py:301"},
      {"subprocess.py(512): run", "triton/backends/nvidia/compiler.py:377"}};
  compile.host = 1'900'000'000;
  step.blocks[2].calls.insert(step.blocks[2].calls.begin(), compile);
  return step;
}

}  // namespace

Run make_dense(const Choice& choice) {
  Dense model;
  model.pool_cast = choice.has("whole-pool-cast");
  model.layout_copy = choice.has("layout-copy");
  model.weight_dequant = choice.has("weight-dequant");
  model.few_splits = choice.has("low-occupancy");
  Run run = base_run("dense", {model.step()}, choice);
  if (choice.has("slow-host")) run.host_scale = 4'000;
  if (choice.has("step-stall")) {
    run.steps.push_back(with_stall(run.steps[0]));
    run.pattern.assign(40, 0);
    run.pattern[17] = 1;
    run.default_steps = 40;
  }
  return run;
}

Run make_host_bound(const Choice& choice) {
  Dense model;
  model.requests = 1;
  model.rows = 1;
  Run run = base_run("host-bound", {model.step()}, choice);
  if (choice.has("slow-host")) run.host_scale = 8'000;
  return run;
}

Run make_prefill_mixed(const Choice& choice) {
  Dense decode;
  decode.requests = decode.rows = 32;
  decode.context = 4096;
  Dense prefill;
  prefill.decode = false;
  prefill.requests = 1;
  prefill.rows = prefill.context = 16'384;
  Run run = base_run("prefill-mixed", {decode.step(), prefill.step()}, choice);
  run.default_steps = 40;
  if (choice.has("prefill-interference")) {
    run.pattern.assign(11, 0);
    run.pattern[10] = 1;
    run.default_steps = 44;
  }
  return run;
}

Run make_gaps(const Choice& choice) {
  const Dense model;
  return base_run("gaps", {model.step(choice.has("late-results") ? 480'000 : 0)}, choice);
}

}  // namespace culprit::forge
