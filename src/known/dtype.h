// Dtype: the element types that kernels and tensors name, their sizes, and the spellings of
// PyTorch, CUDA and configs.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::known {

enum class Dtype : std::uint8_t {
  kUnknown,
  kF64,
  kF32,
  kF16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kFp4,
  kI4,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
};

int bits(Dtype dtype);               // 0 for kUnknown; 4 for kFp4 and kI4
std::string_view dtype_name(Dtype);  // "bf16", "fp8_e4m3", "unknown"
Dtype dtype_from_torch(
    std::string_view text);  // "c10::Float8_e4m3fn", "float", "unsigned char", "long int", ...
// What users and configs write: "fp8", "fp8_e4m3", "float8_e4m3fn", "bf16", "bfloat16", "auto" ->
// kUnknown. Unknown words give kUnknown too: the caller decides whether that is an error.
Dtype dtype_from_config(std::string_view text);

}  // namespace culprit::known
