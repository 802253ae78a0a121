#include "known/dtype.h"

#include <algorithm>
#include <array>
#include <string>

namespace culprit::known {
namespace {

struct DtypeRow {
  Dtype dtype;
  int bits;
  std::string_view name;
};

constexpr std::array<DtypeRow, 15> kDtypes = {{
    {Dtype::kUnknown, 0, "unknown"},
    {Dtype::kF64, 64, "f64"},
    {Dtype::kF32, 32, "f32"},
    {Dtype::kF16, 16, "f16"},
    {Dtype::kBf16, 16, "bf16"},
    {Dtype::kFp8E4m3, 8, "fp8_e4m3"},
    {Dtype::kFp8E5m2, 8, "fp8_e5m2"},
    {Dtype::kFp4, 4, "fp4"},
    {Dtype::kI4, 4, "int4"},
    {Dtype::kI64, 64, "i64"},
    {Dtype::kI32, 32, "i32"},
    {Dtype::kI16, 16, "i16"},
    {Dtype::kI8, 8, "i8"},
    {Dtype::kU8, 8, "u8"},
    {Dtype::kBool, 8, "bool"},
}};

struct Spelling {
  std::string_view text;
  Dtype dtype;
};

// C++ spellings: PyTorch's "Input type" strings, ATen lambdas, CUDA, HIP, CUTLASS. Namespaces are
// stripped before.
constexpr std::array kTorch = {
    Spelling{"double", Dtype::kF64},
    Spelling{"float", Dtype::kF32},
    Spelling{"Half", Dtype::kF16},
    Spelling{"half", Dtype::kF16},
    Spelling{"__half", Dtype::kF16},
    Spelling{"half_t", Dtype::kF16},
    Spelling{"_Float16", Dtype::kF16},
    Spelling{"BFloat16", Dtype::kBf16},
    Spelling{"__nv_bfloat16", Dtype::kBf16},
    Spelling{"nv_bfloat16", Dtype::kBf16},
    Spelling{"__hip_bfloat16", Dtype::kBf16},
    Spelling{"bfloat16_t", Dtype::kBf16},
    Spelling{"__bf16", Dtype::kBf16},
    Spelling{"Float8_e4m3fn", Dtype::kFp8E4m3},
    Spelling{"Float8_e4m3fnuz", Dtype::kFp8E4m3},
    Spelling{"__nv_fp8_e4m3", Dtype::kFp8E4m3},
    Spelling{"float_e4m3_t", Dtype::kFp8E4m3},
    Spelling{"Float8_e5m2", Dtype::kFp8E5m2},
    Spelling{"Float8_e5m2fnuz", Dtype::kFp8E5m2},
    Spelling{"__nv_fp8_e5m2", Dtype::kFp8E5m2},
    Spelling{"float_e5m2_t", Dtype::kFp8E5m2},
    Spelling{"Float4_e2m1fn_x2", Dtype::kFp4},
    Spelling{"__nv_fp4_e2m1", Dtype::kFp4},
    Spelling{"float_e2m1_t", Dtype::kFp4},
    Spelling{"long", Dtype::kI64},
    Spelling{"long int", Dtype::kI64},
    Spelling{"long long", Dtype::kI64},
    Spelling{"int64_t", Dtype::kI64},
    Spelling{"int", Dtype::kI32},
    Spelling{"int32_t", Dtype::kI32},
    Spelling{"short", Dtype::kI16},
    Spelling{"short int", Dtype::kI16},
    Spelling{"int16_t", Dtype::kI16},
    Spelling{"signed char", Dtype::kI8},
    Spelling{"char", Dtype::kI8},
    Spelling{"int8_t", Dtype::kI8},
    Spelling{"unsigned char", Dtype::kU8},
    Spelling{"uint8_t", Dtype::kU8},
    Spelling{"bool", Dtype::kBool},
};

// Words of configs, server flags and quantisation files, in lower case. "fp8" alone means E4M3 in
// SGLang, vLLM and ModelOpt; its E5M2 sister is always spelt out.
constexpr std::array kConfig = {
    Spelling{"float64", Dtype::kF64},
    Spelling{"fp64", Dtype::kF64},
    Spelling{"f64", Dtype::kF64},
    Spelling{"double", Dtype::kF64},
    Spelling{"float32", Dtype::kF32},
    Spelling{"fp32", Dtype::kF32},
    Spelling{"f32", Dtype::kF32},
    Spelling{"float", Dtype::kF32},
    Spelling{"float16", Dtype::kF16},
    Spelling{"fp16", Dtype::kF16},
    Spelling{"f16", Dtype::kF16},
    Spelling{"half", Dtype::kF16},
    Spelling{"bfloat16", Dtype::kBf16},
    Spelling{"bf16", Dtype::kBf16},
    Spelling{"fp8", Dtype::kFp8E4m3},
    Spelling{"float8", Dtype::kFp8E4m3},
    Spelling{"e4m3", Dtype::kFp8E4m3},
    Spelling{"fp8_e4m3", Dtype::kFp8E4m3},
    Spelling{"fp8_e4m3fn", Dtype::kFp8E4m3},
    Spelling{"float8_e4m3", Dtype::kFp8E4m3},
    Spelling{"float8_e4m3fn", Dtype::kFp8E4m3},
    Spelling{"fp8_e4m3fnuz", Dtype::kFp8E4m3},
    Spelling{"float8_e4m3fnuz", Dtype::kFp8E4m3},
    Spelling{"fp8_ds_mla", Dtype::kFp8E4m3},
    Spelling{"e5m2", Dtype::kFp8E5m2},
    Spelling{"fp8_e5m2", Dtype::kFp8E5m2},
    Spelling{"float8_e5m2", Dtype::kFp8E5m2},
    Spelling{"float8_e5m2fnuz", Dtype::kFp8E5m2},
    Spelling{"fp4", Dtype::kFp4},
    Spelling{"fp4_e2m1", Dtype::kFp4},
    Spelling{"nvfp4", Dtype::kFp4},
    Spelling{"mxfp4", Dtype::kFp4},
    Spelling{"e2m1", Dtype::kFp4},
    Spelling{"float4_e2m1fn_x2", Dtype::kFp4},
    Spelling{"int4", Dtype::kI4},
    Spelling{"int64", Dtype::kI64},
    Spelling{"i64", Dtype::kI64},
    Spelling{"int32", Dtype::kI32},
    Spelling{"i32", Dtype::kI32},
    Spelling{"int16", Dtype::kI16},
    Spelling{"i16", Dtype::kI16},
    Spelling{"int8", Dtype::kI8},
    Spelling{"i8", Dtype::kI8},
    Spelling{"uint8", Dtype::kU8},
    Spelling{"u8", Dtype::kU8},
    Spelling{"bool", Dtype::kBool},
};

template <std::size_t N>
Dtype look_up(const std::array<Spelling, N>& table, std::string_view text) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Spelling& row) { return row.text == text; });
  return found == table.end() ? Dtype::kUnknown : found->dtype;
}

const DtypeRow& row_of(Dtype dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return kDtypes[index < kDtypes.size() ? index : 0];
}

}  // namespace

int bits(Dtype dtype) { return row_of(dtype).bits; }

std::string_view dtype_name(Dtype dtype) { return row_of(dtype).name; }

Dtype dtype_from_torch(std::string_view text) {
  const std::size_t scope = text.rfind("::");
  return look_up(kTorch, scope == std::string_view::npos ? text : text.substr(scope + 2));
}

Dtype dtype_from_config(std::string_view text) {
  constexpr std::string_view kPrefix = "torch.";
  if (text.substr(0, kPrefix.size()) == kPrefix) text.remove_prefix(kPrefix.size());
  std::string lower(text.substr(0, 32));
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return look_up(kConfig, lower);
}

}  // namespace culprit::known
