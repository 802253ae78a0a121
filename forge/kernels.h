// Names of device kernels as they stand in traces: demangled by the profiler, in full.
// Source: traces of torch 2.6 to 2.9 with SGLang, FlashInfer, CUTLASS and cuBLAS, SM90 to SM120.
#pragma once

#include <string>
#include <string_view>

namespace culprit::forge::kernel {

// Element types of PyTorch's copy functors; the number is the place of the type's lambda in the
// dispatch.
enum class Element { kBFloat16, kFloat, kLong, kInt };

std::string cast_copy(
    Element to);  // contiguous, dtypes differ; works through 512 elements per block
std::string layout_copy(Element of);  // same dtype, strided; 512 elements per block
std::string to_fp8_copy();            // bf16 -> e4m3
std::string gather_rows();            // embedding
std::string index_put();
std::string add(Element of);
std::string add_scalar(Element of);
std::string multiply_scalar(Element of);
std::string argmax();
std::string scan();
std::string rms_norm();
std::string add_rms_norm();
std::string rope();
std::string silu_and_mul();
std::string mla_attention(bool fp8_pool);
std::string gqa_attention();
std::string gqa_prefill_attention();
std::string bmm_wmma(std::string_view layout);  // "nn", "tn"
std::string fp4_gemm();
std::string fp4_grouped_gemm(bool finalize);
std::string fp4_quantize();
std::string router_gate();
std::string moe(std::string_view function, std::string_view arguments, std::string_view parameters);
std::string all_reduce();
std::string all_gather();

}  // namespace culprit::forge::kernel
