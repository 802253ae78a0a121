#include "forge/filler.h"

#include <string>
#include <utility>

namespace culprit::forge {
namespace {

Value bf16(std::vector<std::int64_t> dims) { return {"c10::BFloat16", std::move(dims), ""}; }
Value scalar(std::string concrete) { return {"Scalar", {}, std::move(concrete)}; }
Value list(std::string concrete) { return {"ScalarList", {}, std::move(concrete)}; }
Op op(int depth, std::string name, std::vector<Value> inputs) {
  return {depth, std::move(name), std::move(inputs), false};
}

}  // namespace

const std::vector<FillerFrame>& filler_frames() {
  static const std::vector<FillerFrame> frames = {
      {0,
       {"torch/nn/modules/module.py(1940): __getattr__",
        "/sgl-workspace/sglang/python/sglang/srt/layers/linear.py:421"}},
      {0,
       {"<built-in function isinstance>",
        "/sgl-workspace/sglang/python/sglang/srt/layers/linear.py:423"}},
      {0,
       {"torch/nn/modules/module.py(1779): _call_impl",
        "/sgl-workspace/sglang/python/sglang/srt/models/deepseek_v2.py:1891"}},
      {1,
       {"<built-in method _get_tracing_state of PyCapsule object at 0x7f3bd1c07e40>",
        "torch/nn/modules/module.py:1771"}},
      {1, {"<built-in function len>", "torch/nn/modules/module.py:1782"}},
      {0,
       {"/sgl-workspace/sglang/python/sglang/srt/distributed/parallel_state.py(1431): get_tp_group",
        "/sgl-workspace/sglang/python/sglang/srt/layers/communicator.py:598"}},
      {0,
       {"torch/_ops.py(1158): __call__",
        "/sgl-workspace/sglang/python/sglang/srt/layers/layernorm.py:171"}},
      {1, {"torch/_library/custom_ops.py(585): wrapped_fn", "torch/_ops.py:1169"}},
      {2,
       {"<built-in method get of dict object at 0x7f3a440f2b80>",
        "torch/_library/custom_ops.py:588"}},
      {1,
       {"<built-in method stride of Tensor object at 0x7f3990d2c7d0>",
        "torch/_library/custom_ops.py:604"}},
      {0,
       {"/sgl-workspace/sglang/python/sglang/srt/server_args.py(5127): get_global_server_args",
        "/sgl-workspace/sglang/python/sglang/srt/layers/communicator.py:421"}},
      {0,
       {"<built-in method numel of Tensor object at 0x7f3990d2f010>",
        "/sgl-workspace/sglang/python/sglang/srt/layers/quantization/unquant.py:133"}},
      {0,
       {"/sgl-workspace/sglang/python/sglang/srt/utils/common.py(232): is_cuda",
        "/sgl-workspace/sglang/python/sglang/srt/layers/layernorm.py:158"}},
      {1,
       {"<built-in function hasattr>",
        "/sgl-workspace/sglang/python/sglang/srt/utils/common.py:234"}},
      {0,
       {"<built-in method view of Tensor object at 0x7f3990d2c4b0>",
        "/sgl-workspace/sglang/python/sglang/srt/models/deepseek_common/attention_forward_methods/"
        "forward_mla.py:283"}},
      {0,
       {"torch/_jit_internal.py(103): is_scripting",
        "/sgl-workspace/sglang/python/sglang/srt/layers/activation.py:73"}},
      {0,
       {"<built-in method append of list object at 0x7f3a11be6a00>",
        "/sgl-workspace/sglang/python/sglang/srt/layers/radix_attention.py:118"}},
      {0,
       {"enum.py(193): __get__",
        "/sgl-workspace/sglang/python/sglang/srt/model_executor/forward_batch_info.py:128"}},
  };
  return frames;
}

const std::vector<Op>& filler_ops() {
  static const std::vector<Op> ops = {
      op(0, "aten::view", {bf16({1, 6144}), list("[-1, 6144]")}),
      op(0, "aten::slice",
         {bf16({1, 8, 576}), scalar("2"), scalar("0"), scalar("512"), scalar("1")}),
      op(1, "aten::as_strided",
         {bf16({1, 8, 576}), list("[1, 8, 512]"), list("[4608, 576, 1]"), scalar("0")}),
      op(0, "aten::empty",
         {list("[1, 6144]"), scalar("15"), scalar("0"), scalar("0"), scalar("False"), Value{}}),
      op(0, "aten::reshape", {bf16({1, 8, 512}), list("[1, 4096]")}),
      op(1, "aten::view", {bf16({1, 8, 512}), list("[1, 4096]")}),
      op(0, "aten::transpose", {bf16({8, 1, 512}), scalar("0"), scalar("1")}),
      op(1, "aten::as_strided",
         {bf16({8, 1, 512}), list("[1, 8, 512]"), list("[512, 512, 1]"), Value{}}),
      op(0, "aten::empty_like",
         {bf16({1, 6144}), scalar("15"), scalar("0"), Value{}, scalar("False"), Value{}}),
      op(1, "aten::empty_strided",
         {list("[1, 6144]"), list("[6144, 1]"), scalar("15"), scalar("0"), Value{}, Value{}}),
      op(0, "aten::unsqueeze", {bf16({1, 576}), scalar("1")}),
      op(1, "aten::as_strided",
         {bf16({1, 576}), list("[1, 1, 576]"), list("[576, 576, 1]"), Value{}}),
  };
  return ops;
}

}  // namespace culprit::forge
