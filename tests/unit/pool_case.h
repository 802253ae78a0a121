// A decode step with a cast of the whole KV pool in front of every attention call, and its healthy
// twin: the founding case's kernels and figures (GLM-5, 78 layers, pool of 495,552 x 576).
#pragma once

#include <string>

#include "known/models.h"
#include "run_builder.h"

namespace culprit {

struct PoolCase {
  std::int64_t layers = 78, steps = 3;
  std::int32_t blocks = 557'496;
  Nanos cast_ns = 828'000, attention_ns = 11'000, gemm_ns = 178'000, comm_ns = 98'000;
  int casts_per_layer = 1;
  bool casts = true;
  bool cast_before_gemm = false;  // as the dequantisation of a weight would be
  std::string op = "aten::copy_";
  std::string dims = "[[495552, 1, 576], [495552, 1, 576], []]";
  std::string types = "[\"c10::BFloat16\", \"c10::Float8_e4m3fn\", \"Scalar\"]";
  std::string attention_dims;  // of what attention reads; empty: not recorded
  std::optional<std::int64_t> batch = 1;
  std::optional<std::int64_t> layer_count = 78;

  // The host launches far ahead: gaps between kernels stay out of the way.
  void build(RunBuilder& builder) const {
    const store::ThreadId host = builder.thread("31742");
    const run::GroupId cast = builder.cast_group(blocks);
    const run::GroupId attention =
        builder.group("BatchMLAPagedAttention", known::Owner::kAttention);
    const run::GroupId gemm = builder.group("moe_gemm", known::Owner::kMoeGemm);
    const run::GroupId comm = builder.group("ncclAllReduce", known::Owner::kComm);
    const run::GroupId norm = builder.group("rmsnorm", known::Owner::kNorm);
    builder.at(norm).info.grid_rule = known::GridRule::kRowsPerBlock;
    Nanos now = 0, host_now = -1'000'000;
    const auto launch = [&](run::GroupId group, Nanos dur, store::OpRow around = {}) {
      const store::CallRow call = builder.call("cudaLaunchKernel", host, host_now, 4'000);
      host_now += 9'000;
      builder.kernel(group, now, dur, call, around);
      now += dur;
    };
    for (std::int64_t step = 0; step < steps; ++step) {
      const Nanos begin = now;
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        launch(norm, 3'000);
        if (cast_before_gemm) launch(attention, attention_ns);
        for (int i = 0; casts && i < casts_per_layer; ++i) {
          const store::OpRow row = op.empty()
                                       ? store::OpRow{}
                                       : builder.op(op, host, host_now - 1'000, 8'000, dims, types);
          launch(cast, cast_ns, row);
        }
        const store::OpRow reads =
            attention_dims.empty() ? store::OpRow{}
                                   : builder.op("decode_attention", host, host_now - 1'000, 8'000,
                                                attention_dims, "[\"float\", \"c10::BFloat16\"]");
        if (!cast_before_gemm) launch(attention, attention_ns, reads);
        launch(gemm, gemm_ns);
        launch(comm, comm_ns);
      }
      builder.step(begin, now, true, batch);
    }
    builder.run().layers.count = layer_count;
    builder.run().layers.how = layer_count ? "call-counts" : "";
    known::GpuMatch gpu;
    gpu.gpu.name = "RTX PRO 6000 Blackwell Server";
    gpu.gpu.peak_gbps = 1792;
    builder.run().gpu = gpu;
    builder.build();
  }
};

inline known::Model glm5() {
  known::Model model;
  model.name = "GLM-5";
  model.hidden = 6144;
  model.layers = 78;
  model.heads = model.kv_heads = 64;
  model.head_dim = 64;
  model.q_lora_rank = 2048;
  model.kv_lora_rank = 512;
  model.qk_nope_head_dim = 192;
  model.qk_rope_head_dim = 64;
  model.v_head_dim = 256;
  model.intermediate = 12288;
  model.moe_intermediate = 2048;
  model.experts = 256;
  model.experts_per_token = 8;
  model.shared_experts = 1;
  model.first_dense = 3;
  model.vocab = 154880;
  return model;
}

}  // namespace culprit
