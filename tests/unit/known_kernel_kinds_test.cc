// Kernels of the libraries that serve language models, by name as profilers print them: kind,
// family, short name, element types.
#include <gtest/gtest.h>

#include <string>

#include "known/kernel_name.h"

namespace culprit::known {
namespace {

struct Case {
  const char* name;
  Owner kind;
  const char* family;
  const char* short_name;
};

const Case kCases[] = {
    // collectives
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Owner::kComm,
     "nccl", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
    {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", Owner::kComm, "nccl",
     "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"},
    {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, "
     "unsigned long)",
     Owner::kComm, "custom-allreduce", "multimem_all_reduce_kernel"},
    {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, "
     "vllm::Signal*, __nv_bfloat16*, int, int)",
     Owner::kComm, "vllm", "cross_device_reduce_1stage"},
    {"void "
     "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::"
     "trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, true>(P)",
     Owner::kComm, "flashinfer", "allreduce_fusion_kernel_oneshot_lamport"},
    {"void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, int)", Owner::kComm, "deepep",
     "dispatch"},
    // attention
    {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
     "cutlass::bfloat16_t>, true>(flash::Flash_fwd_params)",
     Owner::kAttention, "flash-attention", "flash_fwd_splitkv_kernel"},
    {"void "
     "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
     "CollectiveMainloopFwdSm90<2> > > >(flash::Params)",
     Owner::kAttention, "flash-attention", "cutlass::device_kernel"},
    {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, "
     "8u, 16u>(P)",
     Owner::kAttention, "flashinfer", "BatchDecodeWithPagedKVCacheKernel"},
    {"void flashinfer::mla::BatchMLAPageAttentionHopperKernel<T>(P)", Owner::kAttention,
     "flashinfer", "BatchMLAPageAttentionHopperKernel"},
    {"void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8>, "
     "false>(Flash_fwd_mla_params)",
     Owner::kAttention, "flashmla", "flash_fwd_splitkv_mla_kernel"},
    {"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
     Owner::kAttention, "trtllm", "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSe..."},
    {"kernel_unified_attention_3d", Owner::kAttention, "triton", "kernel_unified_attention_3d"},
    {"_fwd_grouped_kernel_stage1", Owner::kAttention, "", "_fwd_grouped_kernel_stage1"},
    {"void deep_gemm::sm90_fp8_paged_mqa_logits<1u, 64u, 128u, 64u>(unsigned int)",
     Owner::kAttention, "deepgemm", "sm90_fp8_paged_mqa_logits"},
    {"void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, "
     "false>(__hip_bfloat16*)",
     Owner::kAttention, "", "paged_attention_ll4mi_reduce_kernel"},
    {"_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_"
     "40BlockFmhaBatchPrefillPipelineQRKSVSAsyncEEEEEvDpT1_",
     Owner::kAttention, "ck", "ck_tile FmhaBatchPrefillWithPagedKVCacheKernel"},
    // KV stores
    {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
     "(vllm::Fp8KVCacheDataType)1>(__nv_bfloat16 const*)",
     Owner::kKvStore, "vllm", "reshape_and_cache_flash_kernel"},
    {"void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous "
     "namespace)::StoreKVCacheParams)",
     Owner::kKvStore, "sglang", "store_kvcache"},
    {"set_mla_kv_buffer_kernel", Owner::kKvStore, "", "set_mla_kv_buffer_kernel"},
    {"void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, "
     "(vllm::Fp8KVCacheDataType)0>(P)",
     Owner::kKvStore, "vllm", "concat_and_cache_mla_kernel"},
    // dense GEMM
    {"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Owner::kGemm, "cublas",
     "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_kernel__"
     "5x_cublas",
     Owner::kGemm, "cublas", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64..."},
    {"void "
     "cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_"
     "8x5_nn_align1::Params)",
     Owner::kGemm, "cutlass", "cutlass_80_simt_sgemm_128x32_8x5_nn_align1"},
    {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, "
     "float, false, true, true, false, 7>(P)",
     Owner::kGemm, "cublas", "gemvx::kernel"},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float, "
     "__nv_bfloat16>(cublasLt::cublasSplitKParams<float>)",
     Owner::kGemm, "cublas", "splitKreduce_kernel"},
    {"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 1u, 64u, 128u, 128u, 6u, 0u, 128u, "
     "128u, 1u, false, 132u, (deep_gemm::GemmType)0>(float*)",
     Owner::kGemm, "deepgemm", "sm90_fp8_gemm_1d2d_impl"},
    {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN_LDSB1", Owner::kGemm,
     "hipblaslt", "Cijk_Alik_Bljk_BBS MT256x32x64"},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, "
     "int>, "
     "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::"
     "MainloopSm120TmaWarpSpecializedBlockScaled<4, 2>, cute::tuple<cutlass::float_e2m1_t, "
     "cutlass::float_ue4m3_t> > > >(P)",
     Owner::kGemm, "cutlass", "cutlass gemm e2m1"},
    {"_w8a8_block_fp8_matmul", Owner::kGemm, "", "_w8a8_block_fp8_matmul"},
    {"gemm_Bfloat16_E4m3E4m3_Fp32_t128x16x128_s6_et128x16", Owner::kGemm, "trtllm",
     "gemm_Bfloat16_E4m3E4m3_Fp32_t128x16x128_s6_et128x16"},
    {"void marlin::Marlin<__nv_bfloat16, 256l, 1, 8, 8, 4>(int4 const*)", Owner::kGemm, "marlin",
     "Marlin"},
    // expert GEMM
    {"void "
     "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<"
     "cute::tuple<int, int, int> >, "
     "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::"
     "MainloopSm120ArrayTmaWarpSpecializedBlockScaled<4>, cute::tuple<cutlass::float_e2m1_t, "
     "cutlass::float_ue4m3_t> > > >(P)",
     Owner::kMoeGemm, "cutlass", "cutlass grouped gemm e2m1"},
    {"fused_moe_kernel", Owner::kMoeGemm, "", "fused_moe_kernel"},
    {"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 256u, 64u, "
     "(deep_gemm::GemmType)2>(float*)",
     Owner::kMoeGemm, "deepgemm", "sm90_fp8_gemm_1d2d_impl"},
    {"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_clmp_swiGlu_"
     "dynBatch_sm100f",
     Owner::kMoeGemm, "trtllm", "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m1..."},
    {"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", Owner::kMoeGemm, "triton-kernels",
     "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu"},
    {"void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899907892224l, 256, 4>(int4 const*)",
     Owner::kMoeGemm, "marlin", "Marlin"},
    {"_ZN5aiter49fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_32x256E", Owner::kMoeGemm, "aiter",
     "fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_32x256"},
    // routing
    {"void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, int>(float const*, bool const*, float*, "
     "int)",
     Owner::kRouter, "vllm", "topkGatingSoftmax"},
    {"void moe_fused_gate_kernel<cutlass::bfloat16_t, 8, 256, 8, 32, 4, 8>(void*)", Owner::kRouter,
     "", "moe_fused_gate_kernel"},
    {"void "
     "moe::dev::routing::routingIndicesHistogramKernel<moe::dev::routing::routingRenormalize::"
     "KernelParams<__nv_bfloat16> >(P)",
     Owner::kRouter, "trtllm", "routingIndicesHistogramKernel"},
    {"void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*)", Owner::kRouter, "vllm",
     "moe_align_block_size_kernel"},
    {"void "
     "moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<cutlass::bfloat16_"
     "t> >(P)",
     Owner::kRouter, "trtllm", "finalizeKernelVecLoad"},
    {"_combined_routing_compute", Owner::kRouter, "", "_combined_routing_compute"},
    // pointwise work of a layer
    {"void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
     Owner::kNorm, "flashinfer", "FusedAddRMSNormKernel"},
    {"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_"
     "S4_diiiiiiib",
     Owner::kNorm, "aiter", "add_rmsnorm_quant_kernel"},
    {"void cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*)", Owner::kNorm, "",
     "cuApplyLayerNorm"},
    {"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", Owner::kRope, "vllm",
     "rotary_embedding_kernel"},
    {"void flashinfer::RopeQuantizeKernel<true, 4u, 1u, __nv_bfloat16, float>(P)", Owner::kRope,
     "flashinfer", "RopeQuantizeKernel"},
    {"void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(__nv_bfloat16*)",
     Owner::kActivation, "flashinfer", "act_and_mul_kernel"},
    {"_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_"
     "S5_EEEEvPS3_PS4_i",
     Owner::kActivation, "sglang", "act_and_mul_kernel"},
    {"void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, true>(void const*)",
     Owner::kQuantize, "", "per_token_group_quant_8bit_kernel"},
    {"void "
     "tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::BlockScaleQuantizationType)2, "
     "__nv_bfloat16, 32, true>(int)",
     Owner::kQuantize, "trtllm", "quantize_with_block_size"},
    {"void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>(int, int, __nv_bfloat16 const*)",
     Owner::kQuantize, "vllm", "cvt_fp16_to_fp4"},
    {"void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float, int>(float*)",
     Owner::kSampling, "flashinfer", "TopKTopPSamplingFromProbKernel"},
    // llama.cpp
    {"void mul_mat_vec_q<(ggml_type)12, 1, false>(void const*, void const*)", Owner::kGemm, "",
     "mul_mat_vec_q"},
    {"void flash_attn_ext_f16<128, 128, 8, 8>(char const*)", Owner::kAttention, "flash-attention",
     "flash_attn_ext_f16"},
    {"void rms_norm_f32<1024, true, false>(float const*, float*)", Owner::kNorm, "",
     "rms_norm_f32"},
    {"void cpy_f32_f16<&cpy_1_f32_f16>(char const*, char*)", Owner::kCopy, "", "cpy_f32_f16"},
    {"void topk_moe_cuda<256, true>(float const*)", Owner::kRouter, "", "topk_moe_cuda"},
    // Inductor
    {"triton_poi_fused_silu_mul_0", Owner::kActivation, "triton", "triton_poi_fused_silu_mul_0"},
    {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", Owner::kNorm, "triton",
     "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1"},
    {"triton_poi_fused__to_copy_1", Owner::kCast, "triton", "triton_poi_fused__to_copy_1"},
    {"triton_poi_fused__to_copy_add_3", Owner::kElementwise, "triton",
     "triton_poi_fused__to_copy_add_3"},
    {"triton_poi_fused_constant_pad_nd_moe_forward_0", Owner::kCopy, "triton",
     "triton_poi_fused_constant_pad_nd_moe_forward_0"},
    {"triton_tem_fused_mm_4", Owner::kGemm, "triton", "triton_tem_fused_mm_4"},
    {"triton_per_fused_sum_2", Owner::kReduce, "triton", "triton_per_fused_sum_2"},
    {"triton__0d1d2d3de", Owner::kOtherKernel, "triton", "triton__0d1d2d3de"},
    // memory, reductions, and what is none of ours
    {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
     "namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(P)",
     Owner::kCopy, "aten", "CatArrayBatchedCopy"},
    {"__amd_rocclr_copyBuffer.kd", Owner::kMemcpy, "", "__amd_rocclr_copyBuffer"},
    {"__amd_rocclr_fillBufferAligned", Owner::kMemset, "", "__amd_rocclr_fillBufferAligned"},
    {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, false, "
     "false>(float*)",
     Owner::kReduce, "aten", "softmax_warp_forward"},
    {"void (anonymous namespace)::scaled_upper_triang_masked_softmax_warp_forward<c10::Half, "
     "c10::Half, float, 11>(c10::Half*)",
     Owner::kAttention, "", "scaled_upper_triang_masked_softmax_warp_forward"},
    {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
     Owner::kOtherKernel, "cudnn", "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32..."},
    {"void marlin::gptq_marlin_repack_kernel<256, 4, false, false>(unsigned int const*)",
     Owner::kOtherKernel, "marlin", "gptq_marlin_repack_kernel"},
    {"void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)", Owner::kOtherKernel, "fbgemm",
     "permute_2D_data_kernel"},
    {"void at::native::upsample_nearest2d_out_frame<float>(float)", Owner::kOtherKernel, "aten",
     "upsample_nearest2d_out_frame"},
    {"void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<P>(long)", Owner::kOtherKernel,
     "cub", "DeviceRadixSortSingleTileKernel"},
    {"compute_position_kernel", Owner::kOtherKernel, "", "compute_position_kernel"},
};

TEST(KernelKinds, EveryKernelIsWhatItsNameSays) {
  for (const Case& c : kCases) {
    const KernelInfo info = decode_kernel(c.name);
    EXPECT_EQ(owner_name(info.kind), owner_name(c.kind)) << c.name;
    EXPECT_EQ(info.family, c.family) << c.name;
    EXPECT_EQ(info.short_name, c.short_name) << c.name;
  }
}

TEST(KernelKinds, ElementTypesWhereTheNameTellsThem) {
  const struct {
    const char* name;
    Dtype in, out;
  } kTyped[] = {
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(A)", Dtype::kBf16, Dtype::kBf16},
      {"ncclDevKernel_AllGather_RING_LL(A)", Dtype::kUnknown, Dtype::kUnknown},
      {"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Dtype::kBf16, Dtype::kBf16},
      {"nvjet_qqtst_128x160_128x6_2x1_v_bz_TNN", Dtype::kFp8E4m3, Dtype::kBf16},
      {"nvjet_hsh_128x128_64x6_2x1_v_bz_TNT", Dtype::kF16, Dtype::kF16},
      {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize192x128x32", Dtype::kF16, Dtype::kF16},
      {"ampere_sgemm_128x64_nn", Dtype::kF32, Dtype::kUnknown},
      {"Cijk_Alik_Bljk_BBS_BH_Bias", Dtype::kBf16, Dtype::kBf16},
      {"Cijk_Alik_Bljk_B_BS_BH_Bias", Dtype::kBf16, Dtype::kBf16},
      {"Cijk_Ailk_Bljk_S_B_Bias_HA", Dtype::kF32, Dtype::kF32},
      {"bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256", Dtype::kFp4, Dtype::kBf16},
      {"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKv", Dtype::kFp8E4m3, Dtype::kBf16},
      {"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", Dtype::kFp4, Dtype::kBf16},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
       "(vllm::Fp8KVCacheDataType)1>(P)",
       Dtype::kBf16, Dtype::kFp8E4m3},
      {"void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, "
       "(vllm::Fp8KVCacheDataType)0>(P)",
       Dtype::kBf16, Dtype::kBf16},
  };
  for (const auto& c : kTyped) {
    const KernelInfo info = decode_kernel(c.name);
    EXPECT_EQ(dtype_name(info.dtype_in), dtype_name(c.in)) << c.name;
    EXPECT_EQ(dtype_name(info.dtype_out), dtype_name(c.out)) << c.name;
  }
}

}  // namespace
}  // namespace culprit::known
