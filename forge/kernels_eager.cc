#include "forge/kernels_eager.h"

#include <fmt/format.h>

#include <string_view>

namespace culprit::forge::kernel {
namespace {

std::string vectorized(int width, std::string_view functor, int arrays) {
  return fmt::format(
      "void at::native::vectorized_elementwise_kernel<{0}, {1}, std::array<char*, {2}ul> >(int, "
      "{1}, std::array<char*, {2}ul>)",
      width, functor, arrays);
}

std::string lambda_of(std::string_view function, int dispatch, int place, std::string_view type) {
  return fmt::format(
      "at::native::{}(at::TensorIteratorBase&)::{{lambda()#{}}}::operator()() "
      "const::{{lambda()#{}}}::operator()() const::{{lambda({})#1}}",
      function, dispatch, place, type);
}

}  // namespace

std::string custom_all_reduce() {
  return "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(sglang::RankData*, "
         "sglang::RankSignals, sglang::Signal*, __nv_bfloat16*, int, int)";
}

std::string cat_copy() {
  constexpr std::string_view kType = "at::native::(anonymous namespace)::OpaqueType<2u>";
  return fmt::format(
      "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<{0}, unsigned "
      "int, 3, 128, 1>({0}*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<{0}, "
      "unsigned int, 128, 1>, at::native::(anonymous "
      "namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)",
      kType);
}

std::string strided_copy_bf16() {
  const std::string inner = fmt::format(
      "at::native::gpu_kernel_impl_nocast<{0}>(at::TensorIteratorBase&, {0} "
      "const&)::{{lambda(int)#1}}",
      lambda_of("direct_copy_kernel_cuda", 3, 12, "c10::BFloat16"));
  return fmt::format("void at::native::elementwise_kernel<128, 4, {0}>(int, {0})", inner);
}

std::string awq_dequantize() {
  return "void awq_dequantize<__nv_bfloat16>(int*, __nv_bfloat16*, int*, __nv_bfloat16*, int, int, "
         "int)";
}

std::string marlin_gemm() {
  return "void marlin::Marlin<__nv_bfloat16, 1125899906909960l, 256, 1, 8, 8, true, 4, 8, "
         "false>(int4 const*, int4 const*, int4*, int4*, int4 const*, int4 const*, int const*, "
         "int, int, int, int, int*, bool, bool, int)";
}

std::string gqa_attention_fp8() {
  constexpr std::string_view kParams =
      "flashinfer::BatchDecodeParams<__nv_bfloat16, __nv_fp8_e4m3, __nv_bfloat16, int>";
  return fmt::format(
      "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, "
      "16u, 16u, 8u, 1u, flashinfer::DefaultAttention<false, false, false, false>, {0} >({0})",
      kParams);
}

std::string top_k_single() {
  return "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, "
         "false>(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, unsigned "
         "int, bool, unsigned int, unsigned int, at::cuda::detail::TensorInfo<float, unsigned "
         "int>, unsigned int, at::cuda::detail::TensorInfo<long, unsigned int>, unsigned int, "
         "float*)";
}

std::string top_k_count() {
  return "void at::native::mbtopk::radixFindKthValues<float, unsigned int, unsigned int, "
         "2>(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, unsigned "
         "int*, unsigned int, unsigned int, int, int, unsigned int, unsigned int, unsigned int*, "
         "float*, short*, unsigned int*)";
}

std::string top_k_gather() {
  return "void at::native::mbtopk::gatherTopK<float, unsigned int, "
         "2>(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, unsigned int, "
         "bool, unsigned int, unsigned int, at::cuda::detail::TensorInfo<float, unsigned int>, "
         "unsigned int, at::cuda::detail::TensorInfo<long, unsigned int>, unsigned int, unsigned "
         "int, unsigned int, float*, unsigned int*, unsigned int*, unsigned int)";
}

std::string pow_float() {
  return vectorized(4,
                    "at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, "
                    "float>(at::TensorIteratorBase&, float)::{lambda(float)#1}",
                    2);
}
std::string mean_float() {
  constexpr std::string_view kOp =
      "at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, "
      "float, 4, 4>";
  return fmt::format("void at::native::reduce_kernel<512, 1, {0} >({0})", kOp);
}
std::string add_scalar_float() {
  return vectorized(4, "at::native::CUDAFunctorOnSelf_add<float>", 2);
}
std::string rsqrt_float() {
  return vectorized(4, lambda_of("rsqrt_kernel_cuda", 2, 2, "float"), 2);
}
std::string multiply_float() {
  return vectorized(4,
                    "at::native::BinaryFunctor<float, float, float, "
                    "at::native::binary_internal::MulFunctor<float> >",
                    3);
}
std::string multiply_bf16() {
  return vectorized(8,
                    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
                    "at::native::binary_internal::MulFunctor<float> >",
                    3);
}
std::string negate_bf16() {
  return vectorized(8, lambda_of("neg_kernel_cuda", 2, 9, "c10::BFloat16"), 2);
}
std::string silu_bf16() {
  return vectorized(8, lambda_of("(anonymous namespace)::silu_kernel", 1, 6, "c10::BFloat16"), 2);
}

std::string matrix_vector() {
  constexpr std::string_view kTensor = "cublasGemvTensorStridedBatched<__nv_bfloat16";
  return fmt::format(
      "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, "
      "16, 4, 4, false, false, cublasGemvParamsEx<int, {0} const>, {0} const>, {0}>, float> "
      ">(cublasGemvParamsEx<int, {0} const>, {0} const>, {0}>, float>, float, float)",
      kTensor);
}

std::string old_gemm() { return "ampere_bf16_s1688gemm_bf16_128x64_ldg8_f2f_stages_32x1_tn"; }
std::string simt_gemm() {
  return "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>("
         "cutlass_80_simt_sgemm_128x32_8x5_tn_align1::Params)";
}

}  // namespace culprit::forge::kernel
