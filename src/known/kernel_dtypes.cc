#include "known/kernel_dtypes.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::known {
namespace {

struct Spelling {
  std::string_view text;
  Dtype dtype;
};

template <std::size_t N>
Dtype look_up(const std::array<Spelling, N>& table, std::string_view text) {
  for (const Spelling& row : table) {
    if (row.text == text) return row.dtype;
  }
  return Dtype::kUnknown;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclKernel_AllReduce_RING_LL_Sum_float". SendRecv
// and AllGather move int8 whatever the tensor holds, and newer names leave it out.
void nccl_types(std::string_view name, KernelInfo& info) {
  constexpr std::array kTypes = {
      Spelling{"f16", Dtype::kF16},        Spelling{"half", Dtype::kF16},
      Spelling{"bf16", Dtype::kBf16},      Spelling{"f32", Dtype::kF32},
      Spelling{"float", Dtype::kF32},      Spelling{"f64", Dtype::kF64},
      Spelling{"double", Dtype::kF64},     Spelling{"f8e4m3", Dtype::kFp8E4m3},
      Spelling{"f8e5m2", Dtype::kFp8E5m2},
  };
  for (const std::string_view word : split_at(name, '_')) {
    const Dtype dtype = look_up(kTypes, word);
    if (dtype != Dtype::kUnknown) info.dtype_in = info.dtype_out = dtype;
  }
}

// cuBLAS letters, e.g. "tst": A, compute, D; with five, "qqtst": A, B, then C, compute, D.
Dtype cublas_letter(char letter) {
  switch (letter) {
    case 'h':
      return Dtype::kF16;
    case 't':
      return Dtype::kBf16;
    case 's':
      return Dtype::kF32;
    case 'q':
      return Dtype::kFp8E4m3;
    default:
      return Dtype::kUnknown;
  }
}

void nvjet_types(std::string_view name, KernelInfo& info) {
  for (const std::string_view word : split_at(name, '_')) {
    const bool letters = (word.size() == 3 || word.size() == 5) &&
                         word.find_first_not_of("htsqroud") == std::string_view::npos;
    if (!letters) continue;
    info.dtype_in = cublas_letter(word.front());
    info.dtype_out = cublas_letter(word.back());
    return;
  }
}

// "bf16bf16" and "f16f32" of xmma, "fp16", "bf16" of older cuBLAS, "sgemm". The first names A.
Dtype cublas_word(std::string_view word) {
  constexpr std::array kTypes = {
      Spelling{"bf16", Dtype::kBf16},    Spelling{"fp16", Dtype::kF16},
      Spelling{"f16", Dtype::kF16},      Spelling{"h", Dtype::kF16},
      Spelling{"f32", Dtype::kF32},      Spelling{"tf32", Dtype::kF32},
      Spelling{"sgemm", Dtype::kF32},    Spelling{"dgemm", Dtype::kF64},
      Spelling{"hgemm", Dtype::kF16},    Spelling{"e4m3", Dtype::kFp8E4m3},
      Spelling{"e5m2", Dtype::kFp8E5m2},
  };
  const Dtype whole = look_up(kTypes, word);
  if (whole != Dtype::kUnknown) return whole;
  for (const Spelling& row : kTypes) {  // "bf16bf16": A and B
    if (row.text.size() > 1 && word.substr(0, row.text.size()) == row.text &&
        look_up(kTypes, word.substr(row.text.size())) != Dtype::kUnknown) {
      return row.dtype;
    }
  }
  return Dtype::kUnknown;
}

void cublas_types(std::string_view name, KernelInfo& info) {
  if (name.substr(0, 5) == "nvjet") return nvjet_types(name, info);
  for (const std::string_view word : split_at(name, '_')) {
    const Dtype dtype = cublas_word(word);
    if (dtype == Dtype::kUnknown) continue;
    if (info.dtype_in == Dtype::kUnknown) {
      info.dtype_in = dtype;
    } else {
      info.dtype_out = dtype;
      return;
    }
  }
}

// Tensile: "Cijk_Alik_Bljk_BBS_BH": A and B in B(F16), D in B, compute in S; "B_BS" spells the
// same; "S_B", "SB": single, batched.
void tensile_types(std::string_view name, KernelInfo& info) {
  const auto words = split_at(name, '_');
  constexpr std::size_t kTypes = 3;
  if (words.size() <= kTypes + 1) return;
  std::string letters(words[kTypes]);
  if (letters.size() == 1) letters += words[kTypes + 1];
  const auto letter = [](char c) {
    return c == 'B'   ? Dtype::kBf16
           : c == 'H' ? Dtype::kF16
           : c == 'S' ? Dtype::kF32
           : c == 'D' ? Dtype::kF64
                      : Dtype::kUnknown;
  };
  info.dtype_in = letters.empty() ? Dtype::kUnknown : letter(letters[0]);
  const bool mixed = letters.size() == 3 && letters[2] == 'S';
  info.dtype_out = mixed ? letter(letters[1]) : info.dtype_in;
}

// "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256": D, then A (weights) and B, then the accumulator.
// "fmhaSm100aKernel_QkvE4m3OBfloat16H64": operands, then O.
Dtype trtllm_word(std::string_view word) {
  constexpr std::array kTypes = {
      Spelling{"E2m1", Dtype::kFp4},     Spelling{"E4m3", Dtype::kFp8E4m3},
      Spelling{"E5m2", Dtype::kFp8E5m2}, Spelling{"Bfloat16", Dtype::kBf16},
      Spelling{"Fp16", Dtype::kF16},     Spelling{"Fp32", Dtype::kF32},
  };
  if (word.substr(0, 2) == "Mx") word.remove_prefix(2);
  for (const Spelling& row : kTypes) {
    if (word.substr(0, row.text.size()) == row.text) return row.dtype;
  }
  return Dtype::kUnknown;
}

void trtllm_types(std::string_view name, KernelInfo& info) {
  const auto words = split_at(name, '_');
  if (words.size() < 2) return;
  constexpr std::size_t kOutput = 1;
  const std::string_view head = words[0];
  if ((head == "bmm" || head == "gemm") && words.size() > kOutput + 1) {
    info.dtype_out = trtllm_word(words[kOutput]);
    info.dtype_in = trtllm_word(words[kOutput + 1]);
  } else if (head.substr(0, 4) == "fmha") {
    constexpr std::string_view kOperands = "Qkv";
    if (words[1].substr(0, kOperands.size()) != kOperands) return;
    const std::string_view types = words[1].substr(kOperands.size());
    info.dtype_in = trtllm_word(types);
    const std::size_t output = types.find('O');
    if (output != std::string_view::npos) info.dtype_out = trtllm_word(types.substr(output + 1));
  }
}

// "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1": D x A x B(weights).
void triton_matmul_types(std::string_view name, KernelInfo& info) {
  for (const std::string_view word : split_at(name, '_')) {
    const auto types = split_at(word, 'x');
    // "mxfp4" itself holds an x.
    if (types.size() < 3 || dtype_from_config(types[0]) == Dtype::kUnknown) continue;
    info.dtype_out = dtype_from_config(types[0]);
    const std::string_view weights =
        word.substr(types[0].size() + types[1].size() + 2, std::string_view::npos);
    info.dtype_in = dtype_from_config(weights);
    return;
  }
}

// The narrowest operand that the arguments name; scale types ("ue4m3", "ue8m0") are none.
void cutlass_types(const KernelText& text, KernelInfo& info) {
  constexpr std::array kTypes = {
      Spelling{"float_e2m1", Dtype::kFp4},     Spelling{"float_e4m3", Dtype::kFp8E4m3},
      Spelling{"float_e5m2", Dtype::kFp8E5m2}, Spelling{"bfloat16_t", Dtype::kBf16},
      Spelling{"half_t", Dtype::kF16},
  };
  constexpr std::string_view kNamed = "cutlass_";  // "cutlass_80_tensorop_f16_s16816gemm_f16_..."
  if (text.args.substr(0, kNamed.size()) == kNamed) return cublas_types(text.args, info);
  for (const Spelling& row : kTypes) {
    if (text.args.find(row.text) != std::string_view::npos) {
      info.dtype_in = row.dtype;
      return;
    }
  }
}

// vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>:
// 0 as the cache type says, 1 E4M3, 2 E5M2.
void vllm_cache_types(const KernelText& text, KernelInfo& info) {
  constexpr std::string_view kCacheType = "Fp8KVCacheDataType)";
  const auto arguments = split_arguments(text.args);
  if (arguments.size() < 3 || text.args.find(kCacheType) == std::string_view::npos) return;
  info.dtype_in = dtype_from_torch(arguments[0]);
  const char how =
      text.args[std::min(text.args.find(kCacheType) + kCacheType.size(), text.args.size() - 1)];
  info.dtype_out = how == '1'   ? Dtype::kFp8E4m3
                   : how == '2' ? Dtype::kFp8E5m2
                                : dtype_from_torch(arguments[1]);
}

}  // namespace

void decode_dtypes(const KernelText& text, KernelInfo& info) {
  if (info.family == "nccl") {
    nccl_types(text.base, info);
  } else if (info.family == "cublas") {
    cublas_types(text.base, info);
  } else if (info.family == "hipblaslt") {
    tensile_types(text.base, info);
  } else if (info.family == "trtllm") {
    trtllm_types(text.base, info);
  } else if (info.family == "triton-kernels") {
    triton_matmul_types(text.base, info);
  } else if (info.family == "cutlass") {
    cutlass_types(text, info);
  } else if (info.family == "vllm" && info.kind == Owner::kKvStore) {
    vllm_cache_types(text, info);
  }
}

}  // namespace culprit::known
