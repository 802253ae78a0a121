#include "forge/kernels.h"

#include <fmt/format.h>

namespace culprit::forge::kernel {
namespace {

// Type in the functor and its lambda's place in AT_DISPATCH's list.
struct Lambda {
  std::string_view type;
  int place;
};
Lambda lambda_of(Element element) {
  switch (element) {
    case Element::kBFloat16:
      return {"c10::BFloat16", 12};
    case Element::kFloat:
      return {"float", 7};
    case Element::kLong:
      return {"long", 4};
    case Element::kInt:
      return {"int", 3};
  }
  return {};
}

std::string copy_functor(Element element) {
  const Lambda lambda = lambda_of(element);
  return fmt::format(
      "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() "
      "const::{{lambda()#{}}}::operator()() const::{{lambda({})#1}}",
      lambda.place, lambda.type);
}

std::string vectorized(int width, std::string_view functor, int arrays) {
  return fmt::format(
      "void at::native::vectorized_elementwise_kernel<{0}, {1}, std::array<char*, {2}ul> >(int, "
      "{1}, "
      "std::array<char*, {2}ul>)",
      width, functor, arrays);
}

std::string strided(std::string_view functor) {
  const std::string inner = fmt::format(
      "at::native::gpu_kernel_impl_nocast<{0}>(at::TensorIteratorBase&, {0} "
      "const&)::{{lambda(int)#1}}",
      functor);
  return fmt::format("void at::native::elementwise_kernel<128, 4, {0}>(int, {0})", inner);
}

}  // namespace

std::string cast_copy(Element to) {
  return fmt::format(
      "void at::native::unrolled_elementwise_kernel<{0}, {1}, 4, {2}, {2}, {3} >(int, {0}, {1}, "
      "{2}, {2}, {3})",
      copy_functor(to), "std::array<char*, 2ul>", "TrivialOffsetCalculator<1, unsigned int>",
      "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>");
}

std::string layout_copy(Element of) { return strided(copy_functor(of)); }

std::string to_fp8_copy() {
  return vectorized(
      4,
      "at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
      "const::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}",
      2);
}

std::string gather_rows() {
  return "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, "
         "long, long, long, bool)";
}

std::string index_put() {
  constexpr std::string_view kFunctor =
      "at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<4> "
      ">(at::TensorIterator&, "
      "c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, "
      "long)#1}>(at::TensorIteratorBase&, "
      "c10::ArrayRef<long>, c10::ArrayRef<long>, "
      "at::native::index_put_kernel_impl<at::native::OpaqueType<4> "
      ">(at::TensorIterator&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char "
      "const*, long)#1} const&, "
      "bool)::{lambda(int)#1}";
  return fmt::format("void at::native::index_elementwise_kernel<128, 4, {0}>(long, {0})", kFunctor);
}

std::string add(Element of) {
  return vectorized(of == Element::kBFloat16 ? 8 : 4,
                    fmt::format("at::native::CUDAFunctor_add<{}>", lambda_of(of).type), 3);
}

std::string add_scalar(Element of) {
  return vectorized(4, fmt::format("at::native::CUDAFunctorOnSelf_add<{}>", lambda_of(of).type), 2);
}

std::string multiply_scalar(Element of) {
  const std::string_view type = lambda_of(of).type;
  return vectorized(4,
                    fmt::format("at::native::AUnaryFunctor<{0}, {0}, {0}, "
                                "at::native::binary_internal::MulFunctor<float> >",
                                type),
                    2);
}

std::string argmax() {
  constexpr std::string_view kOp =
      "at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>";
  return fmt::format("void at::native::reduce_kernel<512, 1, {0} >({0})", kOp);
}

std::string scan() {
  return "void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<int, "
         "std::plus<int> "
         ">::Policy900, int const*, int*, at_cuda_detail::cub::ScanTileState<int, true>, "
         "std::plus<int>, "
         "at_cuda_detail::cub::NullType, unsigned int, int, false>(int const*, int*, "
         "at_cuda_detail::cub::ScanTileState<int, true>, int, std::plus<int>, "
         "at_cuda_detail::cub::NullType, unsigned int)";
}

std::string rms_norm() {
  return "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, "
         "__nv_bfloat16*, "
         "unsigned int, unsigned int, unsigned int, float, float)";
}

std::string add_rms_norm() {
  return "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, "
         "__nv_bfloat16*, "
         "__nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)";
}

std::string rope() {
  return "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedHeadParallelismKernel<false, "
         "true, false, 64u, "
         "8u, 8u, __nv_bfloat16, long, "
         "long>(flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheParams<__nv_bfloat16, long, long>)";
}

std::string silu_and_mul() {
  return "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(float silu<float>(float "
         "const&))>(__nv_bfloat16*, __nv_bfloat16 const*, int)";
}

std::string mla_attention(bool fp8_pool) {
  const std::string params =
      fmt::format("flashinfer::MLAParams<__nv_bfloat16, {}, __nv_bfloat16, int>",
                  fp8_pool ? "__nv_fp8_e4m3" : "__nv_bfloat16");
  return fmt::format(
      "void flashinfer::mla::BatchMLAPagedAttentionKernel<flashinfer::mla::KernelTraits<false, 2u, "
      "true, 512u, 64u, 64u, "
      "64u, __nv_bfloat16, {0}, __nv_bfloat16, int>, {1} >({1})",
      fp8_pool ? "__nv_fp8_e4m3" : "__nv_bfloat16", params);
}

std::string gqa_attention() {
  constexpr std::string_view kParams =
      "flashinfer::BatchDecodeParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int>";
  return fmt::format(
      "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, "
      "8u, 16u, 8u, 1u, "
      "flashinfer::DefaultAttention<false, false, false, false>, {0} >({0})",
      kParams);
}

std::string gqa_prefill_attention() {
  constexpr std::string_view kParams =
      "flashinfer::BatchPrefillPagedParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int>";
  return fmt::format(
      "void "
      "flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::"
      "MaskMode)1, 128u, 2u, "
      "4u, 8u, 8u, 4u, 1u, (flashinfer::PosEncodingMode)0, __nv_bfloat16, __nv_bfloat16, "
      "__nv_bfloat16, float, int, "
      "flashinfer::DefaultAttention<false, false, false, false> >, {0} >({0})",
      kParams);
}

std::string bmm_wmma(std::string_view layout) {
  return fmt::format(
      "void "
      "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_{0}_align8>("
      "cutlass_80_wmma_"
      "tensorop_bf16_s161616gemm_bf16_16x16_128x2_{0}_align8::Params)",
      layout);
}

std::string fp4_gemm() {
  constexpr std::string_view kKernel =
      "cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
      "cutlass::gemm::collective::CollectiveMma<"
      "cutlass::gemm::MainloopSm120TmaWarpSpecializedBlockScaled<4, 2, cute::tuple<cute::C<1>, "
      "cute::C<1>, cute::C<1> >, "
      "cutlass::gemm::KernelTmaWarpSpecializedPingpongBlockScaledSm120<2> >, "
      "cute::tuple<cute::C<128>, cute::C<128>, "
      "cute::C<128> >, cute::tuple<cutlass::float_e2m1_t, cutlass::float_ue4m3_t>, "
      "cute::tuple<cute::tuple<long, "
      "cute::C<1>, long>, cute::Layout<cute::tuple<cute::tuple<cute::tuple<cute::C<32>, cute::C<4> "
      ">, int>, "
      "cute::tuple<cute::tuple<cute::C<16>, cute::C<4> >, int>, int> > >, "
      "cute::tuple<cutlass::float_e2m1_t, "
      "cutlass::float_ue4m3_t> >, "
      "cutlass::epilogue::collective::CollectiveEpilogue<cutlass::epilogue::"
      "Sm90TmaWarpSpecialized<3, 2, 4, false, false>, cute::tuple<cute::C<128>, cute::C<128>, "
      "cute::C<128> >, "
      "cutlass::bfloat16_t>, void, void>";
  return fmt::format("void cutlass::device_kernel<{0} >({0}::Params)", kKernel);
}

std::string fp4_grouped_gemm(bool finalize) {
  const std::string kernel_type = fmt::format(
      "cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<cute::tuple<long, "
      "long, long> >, "
      "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::"
      "MainloopSm120ArrayTmaWarpSpecializedBlockScaled<{}, 3, "
      "cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cutlass::gemm::"
      "KernelPtrArrayTmaWarpSpecializedCooperativeBlockScaledSm120<3> >, cute::tuple<cute::C<128>, "
      "cute::C<128>, "
      "cute::C<128> >, cute::tuple<cutlass::float_e2m1_t, cutlass::float_ue4m3_t>, "
      "cute::tuple<cutlass::float_e2m1_t, "
      "cutlass::float_ue4m3_t> >, "
      "cutlass::epilogue::collective::CollectiveEpilogue<cutlass::epilogue::"
      "Sm90PtrArrayTmaWarpSpecialized<4, 2, 32, false, false, 2>, cutlass::bfloat16_t{}>, void, "
      "void>",
      finalize ? 2 : 3,
      finalize ? ", cutlass::epilogue::fusion::ScaledAccPerRowBiasPerColScaleScatter<float>" : "");
  return fmt::format("void cutlass::device_kernel<{0} >({0}::Params)", kernel_type);
}

std::string fp4_quantize() {
  return "void "
         "tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::"
         "BlockScaleQuantizationType)0, "
         "__nv_bfloat16, 16, false, false, false, false, std::integral_constant<bool, false> "
         ">(int, int, int, int, "
         "__nv_bfloat16 const*, float const*, void*, unsigned int*, "
         "flashinfer::QuantizationSFLayout)";
}

std::string router_gate() {
  return "void moe_fused_gate_kernel<cutlass::bfloat16_t, 8, 256, 32, 1, 6, 6>(void*, void*, "
         "float*, int*, long, long, "
         "long, long, double, bool)";
}

std::string moe(std::string_view function, std::string_view arguments,
                std::string_view parameters) {
  const std::string angle = arguments.empty() ? std::string() : fmt::format("<{}>", arguments);
  return fmt::format("{}tensorrt_llm::kernels::cutlass_kernels::{}{}({})",
                     arguments.empty() ? "" : "void ", function, angle, parameters);
}

std::string all_reduce() {
  return "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
}
std::string all_gather() {
  return "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
}

}  // namespace culprit::forge::kernel
