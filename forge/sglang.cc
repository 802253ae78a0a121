#include "forge/sglang.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/kernels.h"

namespace culprit::forge::sglang {
namespace {

int blocks_for(std::int64_t elements, int per_block) {
  return static_cast<int>((elements + per_block - 1) / per_block);
}

Op op(int depth, std::string name, std::vector<Value> inputs) {
  return {depth, std::move(name), std::move(inputs), false};
}

Value none() { return {"", {}, ""}; }

std::string dims_text(const Value& value) {
  return fmt::format("[{}]", fmt::join(value.dims, ", "));
}

constexpr Nanos kCollectiveCall = 4'200;

// A collective of torch.distributed: c10d operator > record_param_comms > the annotation that
// NCCL's wrapper opens.
Call collective(std::vector<Frame> stack, Op c10d, std::string annotation, Launch launch,
                Collective what, std::vector<Value> reported, Nanos host) {
  launch.api = Api::kLaunchKernelExC;
  launch.call = kCollectiveCall;
  launch.collective = std::move(what);
  Call call;
  call.stack = std::move(stack);
  call.ops = {std::move(c10d),
              op(1, "record_param_comms", std::move(reported)),
              {2, std::move(annotation), {}, true}};
  call.launches = {std::move(launch)};
  call.host = host;
  return call;
}

}  // namespace

Frame frame(std::string_view file, int def, std::string_view function, std::string_view caller_file,
            int caller_line) {
  return {fmt::format("{}{}({}): {}", kTree, file, def, function),
          fmt::format("{}{}:{}", kTree, caller_file, caller_line)};
}

std::vector<Frame> reduce_frames() {
  return {frame("distributed/communication_op.py", 11, "tensor_model_parallel_all_reduce",
                "layers/linear.py", 1498),
          frame("distributed/parallel_state.py", 566, "all_reduce",
                "distributed/communication_op.py", 13),
          Frame{"torch/distributed/distributed_c10d.py(2940): all_reduce",
                fmt::format("{}distributed/parallel_state.py:642", kTree)}};
}

Frame builtin(std::string_view what, std::string_view caller_file, int caller_line) {
  return {fmt::format("<built-in {}>", what),
          fmt::format("{}{}:{}", kTree, caller_file, caller_line)};
}

std::vector<Frame> module(std::string_view name, std::string_view file, int def,
                          std::string_view function, std::string_view caller_file,
                          int caller_line) {
  return {
      {fmt::format("nn.Module: {}", name), fmt::format("{}{}:{}", kTree, caller_file, caller_line)},
      {"torch/nn/modules/module.py(1779): _call_impl", "torch/nn/modules/module.py:1773"},
      {fmt::format("{}{}({}): {}", kTree, file, def, function), "torch/nn/modules/module.py:1784"}};
}

std::vector<Frame> operator+(std::vector<Frame> stack, const std::vector<Frame>& more) {
  stack.insert(stack.end(), more.begin(), more.end());
  return stack;
}

std::vector<Frame> operator+(std::vector<Frame> stack, const Frame& more) {
  stack.push_back(more);
  return stack;
}

std::vector<Frame> process_root() {
  constexpr std::string_view kScheduler = "managers/scheduler.py";
  return {{"<string>(1): <module>", ""},
          {"multiprocessing/spawn.py(122): spawn_main", ""},
          {"multiprocessing/spawn.py(135): _main", ""},
          {"multiprocessing/process.py(314): _bootstrap", ""},
          {"multiprocessing/process.py(108): run", ""},
          {fmt::format("{}{}(3037): run_scheduler_process", kTree, kScheduler), ""},
          {"torch/utils/_contextlib.py(120): decorate_context", ""},
          {fmt::format("{}{}(1124): event_loop_normal", kTree, kScheduler), ""}};
}

std::vector<Frame> in_prepare() {
  return {
      frame("managers/scheduler.py", 2009, "get_next_batch_to_run", "managers/scheduler.py", 1119),
      frame("managers/scheduler.py", 2181, "update_running_batch", "managers/scheduler.py", 2089),
      frame("managers/schedule_batch.py", 1902, "prepare_for_decode", "managers/scheduler.py",
            2233)};
}

namespace {
std::vector<Frame> in_run_batch() {
  return {frame("managers/scheduler.py", 2256, "run_batch", "managers/scheduler.py", 1124),
          frame("managers/tp_worker.py", 431, "forward_batch_generation", "managers/scheduler.py",
                2317)};
}
std::vector<Frame> in_runner() {
  return in_run_batch() +
         frame("model_executor/model_runner.py", 2713, "forward", "managers/tp_worker.py", 459) +
         Frame{} +
         frame("model_executor/model_runner.py", 2771, "_forward_raw",
               "model_executor/model_runner.py", 2736);
}
}  // namespace

std::vector<Frame> in_forward(bool decode) {
  const Frame runner = decode ? frame("model_executor/model_runner.py", 2590, "forward_decode",
                                      "model_executor/model_runner.py", 2826)
                              : frame("model_executor/model_runner.py", 2632, "forward_extend",
                                      "model_executor/model_runner.py", 2846);
  return in_runner() + runner +
         Frame{"torch/utils/_contextlib.py(117): decorate_context",
               std::string(kTree) + "model_executor/model_runner.py:2613"};
}

std::vector<Frame> in_metadata() {
  return in_runner() + frame("model_executor/model_runner.py", 2590, "forward_decode",
                             "model_executor/model_runner.py", 2826);
}

std::vector<Frame> in_sample() {
  return in_run_batch() +
         frame("model_executor/model_runner.py", 2893, "sample", "managers/tp_worker.py", 478);
}

std::vector<Frame> in_results() {
  return {
      frame("managers/scheduler.py", 2444, "process_batch_result", "managers/scheduler.py", 1125),
      frame("managers/scheduler_output_processor_mixin.py", 341, "process_batch_result_decode",
            "managers/scheduler.py", 2452)};
}

Call graph_replay() {
  Call call;
  call.stack = {frame("model_executor/cuda_graph_runner.py", 851, "replay",
                      "model_executor/model_runner.py", 2798),
                {"torch/cuda/graphs.py(136): replay",
                 std::string(kTree) + "model_executor/cuda_graph_runner.py:873"},
                {"<built-in method replay of CUDAGraph object at 0x7f3a0c1e5bf0>",
                 "torch/cuda/graphs.py:138"}};
  call.host = 120'000;
  return call;
}

Value tensor(std::string_view dtype, std::vector<std::int64_t> dims) {
  return {std::string(dtype), std::move(dims), ""};
}
Value bf16(std::vector<std::int64_t> dims) { return tensor("c10::BFloat16", std::move(dims)); }
Value scalar(std::string_view concrete) { return {"Scalar", {}, std::string(concrete)}; }
Value list(std::string_view concrete) { return {"ScalarList", {}, std::string(concrete)}; }

Launch on_device(std::string name, int grid, int block, int registers, int shared, Nanos device) {
  Launch launch;
  launch.name = std::move(name);
  launch.grid = {grid, 1, 1};
  launch.block = {block, 1, 1};
  launch.registers = registers;
  launch.shared = shared;
  launch.device = device;
  return launch;
}

Call norm(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, bool fused_add,
          Cost cost) {
  Launch launch =
      on_device(fused_add ? kernel::add_rms_norm() : kernel::rms_norm(), static_cast<int>(rows), 32,
                40, static_cast<int>(fused_add ? width * 4 + 128 : 128), cost.device);
  launch.block = {32, static_cast<int>(width >= 4096 ? 24 : width / 256), 1};
  launch.api = Api::kLaunchKernelExC;
  std::vector<Value> inputs = {bf16({rows, width}), bf16({rows, width}), bf16({width}),
                               scalar("1.0000000000000001e-05"), scalar("True")};
  return {std::move(stack),
          {op(0, fused_add ? "sgl_kernel::fused_add_rmsnorm" : "sgl_kernel::rmsnorm",
              std::move(inputs))},
          {launch},
          cost.host};
}

Call linear(std::vector<Frame> stack, std::int64_t rows, std::int64_t n, std::int64_t k,
            std::string_view kernel_name, int grid, Cost cost) {
  Launch launch = on_device(std::string(kernel_name), grid, 128, 168, 98'304, cost.device);
  launch.api = Api::kDriverLaunchEx;
  const std::vector<Value> xw = {bf16({rows, k}), bf16({n, k}), none()};
  return {std::move(stack),
          {op(0, "aten::linear", xw), op(1, "aten::t", {bf16({n, k})}),
           op(2, "aten::transpose", {bf16({n, k}), scalar("0"), scalar("1")}),
           op(1, "aten::matmul", {bf16({rows, k}), bf16({k, n})}),
           op(2, "aten::mm", {bf16({rows, k}), bf16({k, n})})},
          {launch},
          cost.host};
}

Call batched_matmul(std::vector<Frame> stack, std::int64_t batch, std::int64_t rows, std::int64_t n,
                    std::int64_t k, std::string_view layout, Cost cost) {
  Launch launch =
      on_device(kernel::bmm_wmma(layout), blocks_for(n, 16), 32, 56, 18'432, cost.device);
  launch.grid = {blocks_for(n, 16), blocks_for(rows, 16), static_cast<int>(batch)};
  return {std::move(stack),
          {op(0, "aten::bmm", {bf16({batch, rows, k}), bf16({batch, k, n})})},
          {launch},
          cost.host};
}

Call to_dtype(std::vector<Frame> stack, const Value& from, std::string_view dtype, int dtype_code,
              std::string kernel_name, int elements_per_block, Cost cost) {
  std::int64_t elements = 1;
  for (const std::int64_t n : from.dims) elements *= n;
  const std::string code = std::to_string(dtype_code);
  Value to = from;
  to.dtype = dtype;
  return {std::move(stack),
          {op(0, "aten::to", {from, scalar(code), scalar("False"), scalar("False"), none()}),
           op(1, "aten::_to_copy",
              {from, scalar(code), none(), none(), none(), scalar("False"), none()}),
           op(2, "aten::empty_strided",
              {list(dims_text(from)), list("[]"), scalar(code), none(), scalar("cuda:0"), none()}),
           op(2, "aten::copy_", {to, from, scalar("False")})},
          {on_device(std::move(kernel_name), blocks_for(elements, elements_per_block), 128, 32, 0,
                     cost.device)},
          cost.host};
}

Call elementwise(std::vector<Frame> stack, std::string name, std::vector<Value> inputs,
                 std::string kernel_name, std::int64_t elements, int elements_per_block,
                 Cost cost) {
  return {std::move(stack),
          {op(0, std::move(name), std::move(inputs))},
          {on_device(std::move(kernel_name), blocks_for(elements, elements_per_block), 128, 22, 0,
                     cost.device)},
          cost.host};
}

Call rope(std::vector<Frame> stack, std::int64_t rows, std::int64_t q_heads, std::int64_t kv_heads,
          std::int64_t dim, Cost cost) {
  Launch launch = on_device(kernel::rope(), blocks_for(rows, 4), 32, 40, 0, cost.device);
  launch.grid = {blocks_for(rows, 4), static_cast<int>(q_heads + kv_heads), 1};
  launch.block = {8, 16, 1};
  launch.api = Api::kLaunchKernelExC;
  return {std::move(stack),
          {op(0, "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
              {bf16({rows, q_heads, dim}), bf16({rows, kv_heads, dim}), bf16({rows, q_heads, dim}),
               bf16({rows, kv_heads, dim}), tensor("float", {202'752, dim}),
               tensor("long int", {rows}), scalar("True"), scalar("0")})},
          {launch},
          cost.host};
}

Call silu_and_mul(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, Cost cost) {
  Launch launch = on_device(kernel::silu_and_mul(), static_cast<int>(rows),
                            static_cast<int>(width >= 8192 ? 1024 : width / 8), 24, 0, cost.device);
  launch.api = Api::kLaunchKernelExC;
  return {std::move(stack),
          {op(0, "sgl_kernel::silu_and_mul",
              {bf16({rows, width}), bf16({rows, 2 * width}), scalar("0")})},
          {launch},
          cost.host};
}

Call all_reduce(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, int world,
                Cost cost) {
  const Value message = {"TensorList", {rows, width}, ""};
  const std::string size = std::to_string(world);
  return collective(
      std::move(stack),
      op(0, "c10d::allreduce_", {message, none(), none(), none(), scalar("False"), scalar("-1")}),
      "nccl:all_reduce", on_device(kernel::all_reduce(), 4, 512, 96, 0, cost.device),
      {"allreduce", rows * width, rows * width, "BFloat16", "3"},
      {message, scalar("0"), scalar("0"), none(), list("[]"), list("[]"), scalar("0"), scalar("1"),
       scalar(size)},
      cost.host);
}

Call all_gather(std::vector<Frame> stack, std::int64_t rows, std::int64_t width, int world,
                Cost cost) {
  const std::string size = std::to_string(world);
  const Value in = bf16({rows, width});
  return collective(std::move(stack),
                    op(0, "c10d::_allgather_base_",
                       {bf16({rows * world, width}), in, none(), scalar("False"), scalar("-1")}),
                    "nccl:_all_gather_base",
                    on_device(kernel::all_gather(), 8, 512, 96, 0, cost.device),
                    {"_allgather_base", rows * width, rows * width * world, "BFloat16", "3"},
                    {in, scalar("0"), scalar("0"), none(), list("[]"), list("[]"), scalar("0"),
                     scalar("1"), scalar(size)},
                    cost.host);
}

Call flatten_copy(std::vector<Frame> stack, std::int64_t batch, std::int64_t rows,
                  std::int64_t width, Cost cost) {
  const Value whole = bf16({rows, batch, width});
  const std::string flat = fmt::format("[{}, {}]", rows, batch * width);
  return {std::move(stack),
          {op(0, "aten::flatten", {whole, scalar("1"), scalar("2")}),
           op(1, "aten::reshape", {whole, list(flat)}), op(2, "aten::clone", {whole, scalar("0")}),
           op(3, "aten::copy_", {whole, whole, scalar("False")})},
          {on_device(kernel::layout_copy(kernel::Element::kBFloat16),
                     blocks_for(batch * rows * width, 512), 128, 20, 0, cost.device)},
          cost.host};
}

Call bare(std::vector<Frame> stack, Launch launch, Nanos host) {
  return {std::move(stack), {}, {std::move(launch)}, host};
}

namespace {
Launch copy(std::string_view what, std::int64_t bytes, Nanos device) {
  Launch launch;
  launch.api = Api::kMemcpyAsync;
  launch.name = what;
  launch.bytes = bytes;
  launch.device = device;
  launch.call = 3'400;
  return launch;
}
std::vector<Op> copy_ops(const Value& value, std::string_view device, bool non_blocking) {
  const std::string_view flag = non_blocking ? "True" : "False";
  return {op(0, "aten::to",
             {value, none(), scalar(device), none(), scalar(flag), scalar("False"), none()}),
          op(1, "aten::_to_copy",
             {value, none(), none(), scalar(device), none(), scalar(flag), none()}),
          op(2, "aten::empty_strided",
             {list(dims_text(value)), list("[1]"), scalar("4"), none(), scalar(device), none()}),
          op(2, "aten::copy_", {value, value, scalar(flag)})};
}
}  // namespace

Call copy_to_device(std::vector<Frame> stack, std::int64_t elements, Cost cost) {
  return {std::move(stack),
          copy_ops(tensor("long int", {elements}), "cuda:0", true),
          {copy("Memcpy HtoD (Pinned -> Device)", elements * 8, cost.device)},
          cost.host};
}

Call copy_to_host(std::vector<Frame> stack, std::int64_t elements, Cost cost) {
  Launch read = copy("Memcpy DtoH (Device -> Pageable)", elements * 8, cost.device);
  read.blocking = true;
  Launch wait;
  wait.api = Api::kStreamSynchronize;
  wait.call = 1'900;
  return {std::move(stack),
          copy_ops(tensor("long int", {elements}), "cpu", false),
          {read, wait},
          cost.host};
}

}  // namespace culprit::forge::sglang
