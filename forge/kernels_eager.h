// Names of kernels that show up where something is not fused, not captured or not the right one; the
// rest is in kernels.h. Source: traces of torch 2.6 to 2.9.
#pragma once

#include <string>

namespace culprit::forge::kernel {

std::string custom_all_reduce();  // one shot over peer memory
std::string cat_copy();           // aten::cat of 16-bit values
std::string strided_copy_bf16();  // of a slice
std::string awq_dequantize();     // 4 bits -> bf16
std::string marlin_gemm();        // reads 4 bits itself
std::string gqa_attention_fp8();  // reads an FP8 pool
std::string top_k_single();       // a block a row
std::string top_k_count();        // of the multi-block top-k, the long part
std::string top_k_gather();       // and the short one
std::string pow_float();          // pieces of an RMS norm
std::string mean_float();
std::string add_scalar_float();
std::string rsqrt_float();
std::string multiply_float();
std::string multiply_bf16();
std::string negate_bf16();  // pieces of rope and activation
std::string silu_bf16();
std::string matrix_vector();  // of one row, as cuBLAS does it
std::string old_gemm();       // of another generation's tiles
std::string simt_gemm();      // without tensor cores

}  // namespace culprit::forge::kernel
