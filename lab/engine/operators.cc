#include "lab/engine/operators.h"

#include <array>

namespace culprit::lab {
namespace {

using profile::Dtype;
using profile::Name;

struct FormatWords {
  Dtype dtype;
  Name gemm, moe_gemm;
};
// By Format.
constexpr std::array<FormatWords, 10> kFormats{{
    {profile::kFloat, "gemm_kernel<float>", "moe_gemm_kernel<float>"},
    {profile::kHalf, "gemm_kernel<half>", "moe_gemm_kernel<half>"},
    {profile::kBf16, "gemm_kernel<bf16>", "moe_gemm_kernel<bf16>"},
    {profile::kE4m3, "gemm_kernel<e4m3>", "moe_gemm_kernel<e4m3>"},
    {profile::kE2m1, "gemm_kernel<nvfp4>", "moe_gemm_kernel<nvfp4>"},
    {{"q8_0"}, "gemm_kernel<q8_0>", "moe_gemm_kernel<q8_0>"},
    {{"q4_k"}, "gemm_kernel<q4_k>", "moe_gemm_kernel<q4_k>"},
    {{"q6_k"}, "gemm_kernel<q6_k>", "moe_gemm_kernel<q6_k>"},
    {{"mxfp4"}, "gemm_kernel<mxfp4>", "moe_gemm_kernel<mxfp4>"},
    {{"ggml-nvfp4"}, "gemm_kernel<ggml-nvfp4>", "moe_gemm_kernel<ggml-nvfp4>"},
}};
static_assert(kFormats.size() == static_cast<std::size_t>(Format::kGgmlNvfp4) + 1);

const FormatWords& words_of(Format format) { return kFormats[static_cast<std::size_t>(format)]; }

Name op_name(const Gemm& gemm) {
  if (gemm.kind == Gemm::Kind::kExperts) return "fused_experts";
  if (gemm.format > Format::kE4m3)
    return gemm.format == Format::kNvfp4 ? Name("scaled_fp4_mm") : Name("mul_mat");
  return gemm.kind == Gemm::Kind::kBatched ? Name("aten::bmm") : Name("aten::linear");
}

}  // namespace

Dtype dtype_of(Format format) { return words_of(format).dtype; }

Dtype dtype_of(KvFormat format) {
  return format == KvFormat::kBf16 ? profile::kBf16 : profile::kE4m3;
}

Dtype dtype_of(Activations kind) {
  constexpr std::array<Dtype, 5> kTypes{profile::kFloat, profile::kBf16, profile::kE2m1,
                                        profile::kInt8, profile::kInt8};
  return kTypes[static_cast<std::size_t>(kind)];
}

Name prepare_symbol(Activations kind) {
  if (kind == Activations::kFloat) return "elementwise_copy_kernel<float, float>";
  if (kind == Activations::kBf16) return "elementwise_copy_kernel<float, bf16>";
  return kind == Activations::kNvfp4 ? Name("scaled_fp4_quant_kernel")
                                     : Name("per_token_group_quant_int8_kernel");
}

PrepareOp::PrepareOp(const Launcher& launcher, Activations kind, std::int64_t tokens,
                     std::int64_t width, profile::Location line) {
  if (!launcher.records_ops()) return;
  const bool copies = kind == Activations::kFloat || kind == Activations::kBf16;
  const profile::Call call(copies                        ? Name("aten::copy_")
                           : kind == Activations::kNvfp4 ? Name("scaled_fp4_quant")
                                                         : Name("per_token_group_quant_int8"),
                           line);
  if (copies)
    op_.emplace(call, dtype_of(kind)(tokens, width), profile::kFloat(tokens, width));
  else
    op_.emplace(call, profile::kFloat(tokens, width));
}

Name symbol_of(const Gemm& gemm) {
  const FormatWords& words = words_of(gemm.format);
  return gemm.kind == Gemm::Kind::kExperts ? words.moe_gemm : words.gemm;
}

GemmOp::GemmOp(const Launcher& launcher, const Gemm& gemm, profile::Location line) {
  if (!launcher.records_ops()) return;
  // Two values of FP4 are one element of its type.
  const auto width = [&](bool packed) { return packed ? gemm.cols / 2 : gemm.cols; };
  const std::int64_t in = width(gemm.input == Activations::kNvfp4),
                     by = width(gemm.format == Format::kNvfp4);
  const Name x = dtype_of(gemm.input).name, w = dtype_of(gemm.format).name;
  const profile::Call call(op_name(gemm), line);
  const bool transposed = gemm.format <= Format::kE4m3;  // as aten::bmm takes its second operand
  if (gemm.kind == Gemm::Kind::kPlain)
    op_.emplace(call, Dtype{x}(gemm.tokens, in), Dtype{w}(gemm.rows, by));
  else if (gemm.kind == Gemm::Kind::kExperts)
    op_.emplace(call, Dtype{x}(gemm.tokens, in), Dtype{w}(gemm.count, gemm.rows, by));
  else if (transposed)
    op_.emplace(call, Dtype{x}(gemm.count, gemm.tokens, in), Dtype{w}(gemm.count, by, gemm.rows));
  else
    op_.emplace(call, Dtype{x}(gemm.count, gemm.tokens, in), Dtype{w}(gemm.count, gemm.rows, by));
}

}  // namespace culprit::lab
