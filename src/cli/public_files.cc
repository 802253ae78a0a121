#include "cli/public_files.h"

#include <algorithm>
#include <array>

#include "run/run.h"

namespace culprit::cli {
namespace {

constexpr std::array<std::string_view, 44> kPackages{
    "torch",        "triton",          "vllm",        "sglang",
    "sgl_kernel",   "flashinfer",      "flash_attn",  "flash_mla",
    "deep_gemm",    "deep_ep",         "torchvision", "torchaudio",
    "tensorrt_llm", "transformers",    "xformers",    "numpy",
    "ray",          "uvicorn",         "fastapi",     "starlette",
    "pydantic",     "megatron",        "apex",        "transformer_engine",
    "cutlass",      "aiter",           "lmdeploy",    "accelerate",
    "safetensors",  "huggingface_hub", "mooncake",    "nixl",
    "nvtx",         "uvloop",          "zmq",         "msgspec",
    "outlines",     "xgrammar",        "llguidance",  "tilelang",
    "bitsandbytes", "deepspeed",       "cuda",        "scipy"};

// What follows a package in a working copy of its repository.
constexpr std::array<std::string_view, 38> kInside{"sglang/srt/",
                                                   "sglang/lang/",
                                                   "sglang/jit_kernel/",
                                                   "sglang/multimodal_gen/",
                                                   "vllm/model_executor/",
                                                   "vllm/v1/",
                                                   "vllm/attention/",
                                                   "vllm/worker/",
                                                   "vllm/distributed/",
                                                   "vllm/engine/",
                                                   "vllm/executor/",
                                                   "vllm/entrypoints/",
                                                   "vllm/compilation/",
                                                   "vllm/lora/",
                                                   "vllm/platforms/",
                                                   "vllm/utils/",
                                                   "vllm/vllm_flash_attn/",
                                                   "vllm/_custom_ops.py",
                                                   "vllm/forward_context.py",
                                                   "tensorrt_llm/_torch/",
                                                   "tensorrt_llm/runtime/",
                                                   "tensorrt_llm/executor/",
                                                   "tensorrt_llm/llmapi/",
                                                   "tensorrt_llm/layers/",
                                                   "torch/nn/",
                                                   "torch/_dynamo/",
                                                   "torch/_inductor/",
                                                   "torch/utils/",
                                                   "torch/autograd/",
                                                   "torch/cuda/",
                                                   "torch/distributed/",
                                                   "torch/_ops.py",
                                                   "torch/_tensor.py",
                                                   "triton/runtime/",
                                                   "triton/compiler/",
                                                   "triton/backends/",
                                                   "transformers/models/",
                                                   "lab/engine/"};

}  // namespace

bool is_public_package(std::string_view name) {
  return std::find(kPackages.begin(), kPackages.end(), name) != kPackages.end();
}

std::optional<std::string_view> public_part(std::string_view path) {
  constexpr std::string_view kInstalled = "-packages/", kPython = "/lib/python3";
  const std::size_t installed = path.find(kInstalled);
  if (installed != std::string_view::npos) {
    const std::string_view rest = path.substr(installed + kInstalled.size());
    if (!is_public_package(rest.substr(0, rest.find('/')))) return std::nullopt;
    const std::size_t slash = path.rfind('/', installed);
    return path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  }
  const std::size_t python = path.find(kPython);
  if (python != std::string_view::npos) return path.substr(python + 1);
  for (const std::string_view inside : kInside) {
    for (std::size_t at = path.find(inside); at != std::string_view::npos;
         at = path.find(inside, at + 1))
      if (at == 0 || path[at - 1] == '/') return path.substr(at);
  }
  if (run::is_framework(path)) return path;
  const std::size_t slash = path.find('/');
  if (slash != std::string_view::npos && is_public_package(path.substr(0, slash))) return path;
  return std::nullopt;
}

}  // namespace culprit::cli
