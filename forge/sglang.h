// The calls an SGLang model runner makes, as its traces show them: frames, operators, launches.
// A recipe strings them together; times are the recipe's, everything else is decided here.
// Source: sgl-project/sglang of 2026-04 (torch 2.9); line numbers are of that tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "forge/run.h"

namespace culprit::forge::sglang {

inline constexpr std::string_view kTree = "/sgl-workspace/sglang/python/sglang/srt/";
// Methods of C, with the address that the profiler saw first.
inline constexpr std::string_view kTensorTo = "method to of Tensor object at 0x7f3990d31e50";
inline constexpr std::string_view kTorchBmm = "method bmm of type object at 0x7f3bc8a1e3c0";

// A frame of SGLang's own tree: "<tree>file(def): function", called from "<tree>caller".
Frame frame(std::string_view file, int def, std::string_view function, std::string_view caller_file,
            int caller_line);
// How an all-reduce of the tensor group is called.
std::vector<Frame> reduce_frames();
// A call into C: "<built-in ...>".
Frame builtin(std::string_view what, std::string_view caller_file, int caller_line);
// An nn.Module and what torch puts around its forward.
std::vector<Frame> module(std::string_view name, std::string_view file, int def,
                          std::string_view function, std::string_view caller_file, int caller_line);
std::vector<Frame> operator+(std::vector<Frame> stack, const std::vector<Frame>& more);
std::vector<Frame> operator+(std::vector<Frame> stack, const Frame& more);

std::vector<Frame> process_root();
// Frames of the scheduler's loop; in_forward() ends in the model runner and holds the step mark's
// place.
std::vector<Frame> in_prepare();
std::vector<Frame> in_forward(bool decode);
std::vector<Frame> in_metadata();  // attention plan, inside the mark
std::vector<Frame> in_sample();
std::vector<Frame> in_results();
Call graph_replay();

// Values.
Value tensor(std::string_view dtype, std::vector<std::int64_t> dims);
Value bf16(std::vector<std::int64_t> dims);
Value scalar(std::string_view concrete);
Value list(std::string_view concrete);

// How long something takes.
struct Cost {
  Nanos device = 0;
  Nanos host = 0;
};

Launch on_device(std::string name, int grid, int block, int registers, int shared, Nanos device);

Call norm(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, bool fused_add,
          Cost cost);
// y[rows, n] = x[rows, k] * w[n, k]^T in bf16.
Call linear(std::vector<Frame> stack, std::int64_t rows, std::int64_t n, std::int64_t k,
            std::string_view kernel_name, int grid, Cost cost);
// y[batch, rows, n] = x[batch, rows, k] * w[batch, k, n] in bf16.
Call batched_matmul(std::vector<Frame> stack, std::int64_t batch, std::int64_t rows, std::int64_t n,
                    std::int64_t k, std::string_view layout, Cost cost);
// tensor.to(dtype): aten::to > aten::_to_copy > (aten::empty_strided) aten::copy_.
Call to_dtype(std::vector<Frame> stack, const Value& from, std::string_view dtype, int dtype_code,
              std::string kernel_name, int elements_per_block, Cost cost);
// One elementwise operator over `dims`.
Call elementwise(std::vector<Frame> stack, std::string op, std::vector<Value> inputs,
                 std::string kernel_name, std::int64_t elements, int elements_per_block, Cost cost);
Call rope(std::vector<Frame> stack, std::int64_t rows, std::int64_t q_heads, std::int64_t kv_heads,
          std::int64_t dim, Cost cost);
Call silu_and_mul(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, Cost cost);
// torch.distributed.all_reduce over the tensor-parallel group.
Call all_reduce(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, int world,
                Cost cost);
Call all_gather(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, int world,
                Cost cost);
// x.flatten() of a transposed tensor: aten::flatten > aten::reshape > aten::clone > aten::copy_
// (strided, same dtype).
Call flatten_copy(std::vector<Frame> stack, std::int64_t batch, std::int64_t rows,
                  std::int64_t width, Cost cost);
// A kernel without operator: Triton, or a binding that PyTorch does not see.
Call bare(std::vector<Frame> stack, Launch launch, Nanos host);
Call copy_to_device(std::vector<Frame> stack, std::int64_t elements, Cost cost);
// Waits for everything before it.
Call copy_to_host(std::vector<Frame> stack, std::int64_t elements, Cost cost);

}  // namespace culprit::forge::sglang
