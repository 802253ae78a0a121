// The founding case as a hand-made Answer: GLM-5 decode in which one dtype cast of the whole KV
// pool takes 69 % of every step. Figures are those of the public account; every member has a value,
// so that a renderer that drops one shows it.
#pragma once

#include <memory>
#include <string>

#include "report/report.h"

namespace culprit::test {

struct SampleAnswer {
  std::unique_ptr<store::Trace> trace = std::make_unique<store::Trace>();
  std::unique_ptr<run::Run> run = std::make_unique<run::Run>();
  std::unique_ptr<evidence::Evidence> evidence = std::make_unique<evidence::Evidence>();
  std::unique_ptr<verdict::Verdict> verdict = std::make_unique<verdict::Verdict>();
  report::Answer answer;
};

inline constexpr std::int64_t kPoolElements = 285'437'952;  // 495,552 x 576

inline run::GroupId add_group(SampleAnswer& s, std::string_view name, std::string_view short_name,
                              known::Owner kind, store::Dim3 grid, store::Dim3 block) {
  run::Group group;
  group.name = s.trace->strings.intern(name);
  group.info.short_name = short_name;
  group.info.kind = kind;
  group.kind = kind;
  group.grid = grid;
  group.block = block;
  s.run->groups.push_back(group);
  return run::GroupId(s.run->groups.size() - 1);
}

inline evidence::KernelFigures kernel_figures(run::GroupId group, double calls, Nanos ns,
                                              Nanos step) {
  evidence::KernelFigures kernel;
  kernel.group = group;
  kernel.calls_per_step = calls;
  kernel.calls = static_cast<std::int64_t>(calls) * 28;
  kernel.ns_per_step = ns;
  kernel.share = static_cast<double>(ns) / static_cast<double>(step);
  kernel.avg_ns = ns / static_cast<Nanos>(calls);
  kernel.exposed_ns_per_step = ns;
  return kernel;
}

inline void add_steps(SampleAnswer& s, int count, Nanos length) {
  for (int i = 0; i < count; ++i) {
    run::Step step;
    step.begin = i * length;
    step.end = step.begin + length;
    step.kind = run::StepKind::kDecode;
    step.batch = 1;
    step.mark = "ProfilerStep#" + std::to_string(i + 20);
    step.used = i > 0 && i + 1 < count;
    if (!step.used) step.why_excluded = "partial";
    s.run->steps.push_back(step);
  }
}

inline void add_cast_kernel(SampleAnswer& s, Nanos step) {
  const run::GroupId group =
      add_group(s,
                "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
                "at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4, "
                "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, "
                "at::native::memory::StoreWithCast<1> >(int, ...)",
                "unrolled_elementwise_kernel copy fp8_e4m3 -> bf16", known::Owner::kCast,
                {557'496, 1, 1}, {128, 1, 1});
  evidence::KernelFigures cast = kernel_figures(group, 78, 64'600'000, step);
  cast.elements = known::ElementInterval{285'437'441, 285'437'952};
  cast.elements_exact = kPoolElements;
  cast.elements_how = "dims";
  cast.dims = {495'552, 1, 576};
  cast.dtype_in = known::Dtype::kFp8E4m3;
  cast.dtype_in_how = "dims";
  cast.dtype_out = known::Dtype::kBf16;
  cast.bytes = 3 * kPoolElements;
  cast.gbps = 1034.2;
  cast.of_peak = 0.5771;
  cast.regime = evidence::Regime::kMemory;
  cast.op = "aten::copy_";
  for (const char* op : {"aten::to", "aten::_to_copy", "aten::copy_"}) {
    cast.op_chain.emplace_back(op);
  }
  cast.api = s.trace->strings.intern("cudaLaunchKernel");
  cast.launch_thread = s.trace->strings.intern("31742");
  cast.source =
      run::Source{"/opt/sglang/python/sglang/srt/layers/attention/flashinfer_mla_backend.py", 639,
                  "forward_decode", true, "Tensor.to"};
  s.evidence->kernels.push_back(cast);
}

inline void add_other_kernels(SampleAnswer& s, Nanos step) {
  using known::Owner;
  const auto add = [&](std::string_view name, Owner kind, double calls, Nanos ns) {
    s.evidence->kernels.push_back(
        kernel_figures(add_group(s, name, name, kind, {188, 1, 1}, {256, 1, 1}), calls, ns, step));
  };
  add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", Owner::kComm, 157, 7'700'000);
  add("cutlass_fp4_group_mm_sm120", Owner::kMoeGemm, 150, 6'100'000);
  add("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Owner::kGemm, 312, 7'800'000);
  add("BatchMLAPagedAttentionKernel", Owner::kAttention, 78, 940'000);
  add("rms_norm", Owner::kNorm, 157, 700'000);
}

inline void add_budget(SampleAnswer& s, Nanos step) {
  using known::Owner;
  struct Row {
    Owner owner;
    Nanos ns;
    double calls;
  };
  constexpr Row kRows[] = {
      {Owner::kCast, 64'600'000, 78},         {Owner::kGemm, 7'800'000, 312},
      {Owner::kComm, 7'700'000, 157},         {Owner::kMoeGemm, 6'100'000, 150},
      {Owner::kIdleHostLaunch, 4'400'000, 0}, {Owner::kAttention, 940'000, 78},
      {Owner::kNorm, 700'000, 157},           {Owner::kRope, 400'000, 78},
      {Owner::kRouter, 300'000, 75},          {Owner::kSampling, 180'000, 4},
      {Owner::kUnexplained, 120'000, 0}};
  for (const Row& row : kRows) {
    s.evidence->budget.push_back(
        {row.owner, row.ns, static_cast<double>(row.ns) / static_cast<double>(step), row.calls});
  }
}

inline void add_verdict(SampleAnswer& s, Nanos step) {
  verdict::Suspect suspect;
  suspect.id = "whole-pool-cast";
  suspect.standing = verdict::Standing::kCulprit;
  suspect.confidence = verdict::Confidence::kCertain;
  suspect.claim =
      "Every layer of every step converts its whole KV pool from fp8_e4m3 to bf16, whatever part "
      "of it is in use.";
  suspect.ns_per_step = suspect.exposed_ns_per_step = 64'600'000;
  suspect.share = 64.6 / 93.24;
  suspect.kernels = {0};
  suspect.where = {*s.evidence->kernels[0].source};
  suspect.tensor =
      verdict::TensorMatch{"kv_pool", {495'552, 1, 576}, "fp8_e4m3", kPoolElements, "exact"};
  suspect.live_fraction = 0.0005;
  suspect.facts = {"F1", "F2"};
  suspect.disproved_if =
      "the kernel keeps its time when the KV cache is kept in bf16, or its grid follows the batch";
  suspect.fix = "Gather the active entries, then cast those.";
  suspect.alternatives = {"read FP8 in the attention kernel", "keep the pool in bf16"};
  suspect.gain = {.step_now = step,
                  .low = 28'640'000,
                  .expected = 28'640'000,
                  .high = step,
                  .tokens_per_s_after = 34.9,
                  .bound_by_after = "host-launch",
                  .method = "bound"};
  s.verdict->suspects.push_back(suspect);
  s.verdict->headline =
      "whole-pool-cast: 64.6 of 93.2 ms per step (69.3 %) convert the whole KV pool to bf16";
  s.verdict->ruled_out = {{"w13-dequant",
                           "the cast is of w13",
                           "805,306,368 elements, the kernel wrote 285,437,952",
                           {"F2"}},
                          {"w2-dequant",
                           "the cast is of w2",
                           "402,653,184 elements, the kernel wrote 285,437,952",
                           {"F2"}},
                          {"q_a-dequant",
                           "the cast is of q_a",
                           "12,582,912 elements, the kernel wrote 285,437,952",
                           {"F2"}}};
  s.verdict->healthy = {{"moe-gemm", "88 % of the memory roof", 240'000}};
}

inline SampleAnswer sample_answer() {
  constexpr Nanos kStep = 93'240'000;
  SampleAnswer s;
  s.trace->info.path = "rank0.json.gz";
  s.trace->info.format = "kineto-json";
  s.trace->info.file_bytes = 30'124'070;
  s.trace->info.events = 1'641'756;
  s.trace->info.rank = 0;
  s.run->trace = s.trace.get();
  s.run->kind = run::StepKind::kDecode;
  s.run->how = run::StepsHow::kMarked;
  s.run->layers = {78, "call-counts", 3, {}};
  s.run->properties.name = "NVIDIA RTX PRO 6000 Blackwell Server Edition";
  s.run->properties.sms = 188;
  s.run->properties.cc_major = 12;
  s.evidence->run = s.run.get();
  s.evidence->steps.found = 30;
  s.evidence->steps.used = 28;
  s.evidence->steps.mean = kStep;
  s.evidence->steps.median = 93'200'000;
  s.evidence->steps.p99 = 95'100'000;
  s.evidence->steps.device_span = 92'900'000;
  s.evidence->steps.device_busy = 0.955;
  s.evidence->peak = {1792, "table", true};
  s.evidence->attributed = {0.98, 0.97, 1.0, 0.96};
  add_steps(s, 30, kStep);
  add_cast_kernel(s, kStep);
  add_other_kernels(s, kStep);
  add_budget(s, kStep);
  s.evidence->facts = {
      {"F1", "cast.ns_per_step", 64'600'000, "ns", "sum of durations / steps", "culprit kernels"},
      {"F2", "cast.elements", static_cast<double>(kPoolElements), "element", "dims", ""}};
  add_verdict(s, kStep);
  s.answer.path = "rank0.json.gz";
  s.answer.info = &s.trace->info;
  s.answer.run = s.run.get();
  s.answer.evidence = s.evidence.get();
  s.answer.verdict = s.verdict.get();
  s.answer.notes.add({.code = "partial-step",
                      .severity = store::Severity::kInfo,
                      .count = 2,
                      .byte = std::nullopt,
                      .event = std::nullopt,
                      .where = "steps 0 and 29",
                      .message = "The first and last step are cut by the recording window"});
  s.answer.notes.add({.code = "kernels-missing",
                      .severity = store::Severity::kDataLoss,
                      .count = 60,
                      .byte = std::nullopt,
                      .event = std::nullopt,
                      .where = "steps 0-2",
                      .message = "60 launches have no kernel in the trace"});
  return s;
}

}  // namespace culprit::test
