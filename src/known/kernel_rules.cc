#include "known/kernel_rules.h"

#include <algorithm>
#include <array>
#include <string>

namespace culprit::known {
namespace {

// `words`, in lower case, are alternatives parted by blanks. A word is looked for anywhere in the
// qualified name; "^word" begins its last component, "=word" is all of it.
template <class Value>
struct Rule {
  std::string_view words;
  Value value;
};

using Kind = Rule<Owner>;
constexpr std::array kKinds = {
    // Communication, also where a norm is fused into it: the wire decides its time.
    Kind{"nccldevkernel ncclkernel rccl mscclpp nvshmem deep_ep:: cross_device_reduce allreduce "
         "all_reduce reduce_scatter reducescatter all_gather allgather alltoall all_to_all "
         "sendrecv multimem_ quickreduce userbuffers lamport",
         Owner::kComm},
    Kind{"__amd_rocclr_copybuffer", Owner::kMemcpy},
    Kind{"__amd_rocclr_fillbuffer", Owner::kMemset},

    // Stores into the KV pool, before attention: their names hold "mla", "flash", "paged".
    Kind{"reshape_and_cache concat_and_cache store_kvcache store_kv_cache store_cache "
         "set_mla_kv set_kv_buffer append_paged_kv appendpagedkv quant_and_cache kv_cache_store",
         Owner::kKvStore},

    // Attention with its split reductions, state merges, and the index selection of sparse
    // attention (top-k per row, MQA logits).
    Kind{"fmha flash_fwd flash_bwd flash_attn flashattn flashmla flash_mla attn attention "
         "batchdecode batchprefill singledecode singleprefill batchmla mlapaged mla_decode "
         "mla_prefill mla_fwd mla_a8w8 mla_a16w16 mla_reduce kn_mla get_mla_metadata mergestate "
         "merge_state xqa mmha mha_fwd multihead _fwd_kernel_stage _fwd_grouped_kernel_stage "
         "mqa_logits top_k_per_row topkperrow gated_delta_rule masked_softmax =reduce_segments "
         "=_fwd_kernel",
         Owner::kAttention},

    // Expert GEMMs. A grouped GEMM in a decode step is one.
    Kind{"fused_moe moe_gemm moegemm moefcgemm marlin_moe moe_wna16 grouped_gemm groupedgemm "
         "group_gemm groupgemm groupproblemshape gemm_grouped m_grouped mgrouped matmul_ogs "
         "fmoe moe_mm dynbatch routeact",
         Owner::kMoeGemm},
    // Routing of tokens to experts and back: scores, top-k, sorting, permuting, combining.
    Kind{"topkgating topk_gating topk_softmax topksoftmax topk_sigmoid grouped_topk "
         "moe_fused_gate moe_topk moetopk routing router moe_align moe_sum moesorting moe_sort "
         "expert finalize_matmul finalizekernel finalizemoe moe_permute moe_unpermute dev::permute "
         "expandinputrows ep_scatter ep_gather pre_reorder post_reorder bitmatrix topk_moe "
         "=_topk_forward",
         Owner::kRouter},

    // Convolutions, weight repacking and sparse-feature tables are no kind of ours, though their
    // names hold "gemm". The norms and layout changes of convolution libraries are.
    Kind{"batch_norm batchnorm bn_fw bn_bw", Owner::kNorm},
    Kind{"nchwtonhwc nhwctonchw batched_transpose", Owner::kCopy},
    Kind{"convol conv1d conv2d conv3d fprop dgrad wgrad winograd scudnn cudnn implicit_gemm igemm_ "
         "im2col fft2d miopen repack fbgemm_gpu::",
         Owner::kOtherKernel},

    // Dense GEMM and GEMV with their split-K reductions and epilogues.
    Kind{"gemm gemv matmul mul_mat nvjet ^cijk_ ^custom_cijk splitkreduce ^bmm_ marlin machete "
         "wvsplitk wv_splitk scaled_mm =dot_kernel reduce_1block epilogue::impl",
         Owner::kGemm},

    Kind{"rotary rope_ _rope =rope mlarope applyrope biasrope ropequantize ropekernel mrope",
         Owner::kRope},
    Kind{"rmsnorm rms_norm layernorm layer_norm qknorm qk_norm groupnorm group_norm "
         "rowwisemoments l2norm gammabetabackward",
         Owner::kNorm},
    Kind{"silu gelu swiglu geglu act_and_mul activation", Owner::kActivation},
    Kind{"quant cvt_fp16_to_fp4 cvt_bf16_to_fp4 block_scale_interleave convertsf scaled_fp8",
         Owner::kQuantize},
    Kind{"embedding", Owner::kEmbedding},
    Kind{"sampling ^sample_ _sample_kernel gumbel_sample topk_topp topktopp top_p_ argmax "
         "multinomial penalt rejection "
         "token_bitmask verify_tree verifytree",
         Owner::kSampling},

    Kind{"catarray indexselect index_select gather_kernel indexing_backward index_put indexfunc "
         "scatter_gather transpose copy_kernel ^cpy_ =k_get_rows",
         Owner::kCopy},
    Kind{"softmax soft_max devicereduce devicesegmentedreduce =reduce_kernel devicescan scan_impl "
         "scan_kernel cumsum",
         Owner::kReduce},
    Kind{"elementwise pointwise fused_dropout triu_tril multi_tensor_apply k_bin_bcast unary_op",
         Owner::kElementwise},
};

using Family = Rule<std::string_view>;
constexpr std::array kFamilies = {
    Family{"nccldevkernel ncclkernel", "nccl"},
    Family{"rccl", "rccl"},
    Family{"deep_ep::", "deepep"},
    Family{"nvshmem", "nvshmem"},
    Family{"mscclpp", "mscclpp"},
    Family{"_triton", "triton"},
    Family{"flashinfer", "flashinfer"},
    Family{"flash_mla flashmla flash_fwd_splitkv_mla flash_fwd_mla", "flashmla"},
    Family{"flash:: pytorch_flash flash_fwd flash_bwd flash_attn flashattn", "flash-attention"},
    Family{"deep_gemm fp8_gemm_1d", "deepgemm"},
    Family{"tensorrt_llm trtllm fmhasm fmhareduction moe::dev ^bmm_ ^gemm_bfloat16_ ^gemm_e4m3_ "
           "^gemm_fp16_ ^gemm_e2m1_",
           "trtllm"},
    Family{"vllm", "vllm"},
    Family{"sglang sgl_ store_kvcache", "sglang"},
    Family{"aiter", "aiter"},
    Family{"ck_tile:: ck::", "ck"},
    Family{"^cijk_ ^custom_cijk", "hipblaslt"},
    Family{"cutlass_cudnn cudnn scudnn convolve winograd fprop wgrad dgrad", "cudnn"},
    Family{"miopen igemm_ batched_transpose", "miopen"},
    Family{"nvjet cublas gemv gemmk1 gemmsn splitkreduce xmma_gemm ^ampere_ ^volta_ ^turing_ "
           "^hopper_ ^maxwell_ reduce_1block =dot_kernel epilogue::impl",
           "cublas"},
    Family{"cutlass", "cutlass"},
    Family{"marlin", "marlin"},
    Family{"cross_device_reduce multimem_ allreduce all_reduce quickreduce", "custom-allreduce"},
    Family{"rocprim", "rocprim"},
    Family{"cub::", "cub"},
    Family{"at::native =softmax_warp_forward =softmax_warp_backward cunn_", "aten"},
    Family{"fbgemm split_embedding", "fbgemm"},
    Family{"matmul_ogs finalize_matmul", "triton-kernels"},
    Family{"triton _fwd_kernel kernel_unified_attention", "triton"},
};

// Templates whose name says nothing: the work is named in their arguments.
bool is_wrapper(std::string_view base) {
  constexpr std::array<std::string_view, 7> kWrappers = {
      "cutlass::Kernel",  "cutlass::Kernel2",          "cutlass::device_kernel", "ck_tile::kentry",
      "ck::kernel_entry", "detail::trampoline_kernel", "flash::device_kernel"};
  for (const std::string_view wrapper : kWrappers) {
    if (base == wrapper) return true;
  }
  constexpr std::string_view kVendored = "cutlass_";  // "cutlass_cudnn_train::Kernel"
  return base == "device_kernel" || base.substr(0, kVendored.size()) == kVendored;
}

struct Subject {
  std::string name;  // lower case, qualified
  std::string base;  // lower case, last component
};

Subject subject_of(const KernelText& text) {
  // Enough to hold the tile shapes and types of every GEMM seen; bounds the cost of hostile names.
  constexpr std::size_t kMostArguments = 4096;
  Subject subject{lower_case(text.head), lower_case(text.base)};
  if (is_wrapper(text.base)) {
    subject.name += ' ';
    subject.name += lower_case(text.args.substr(0, kMostArguments));
  }
  return subject;
}

bool word_matches(std::string_view word, const Subject& subject) {
  if (word.front() == '=') return subject.base == word.substr(1);
  if (word.front() == '^') return subject.base.compare(0, word.size() - 1, word.substr(1)) == 0;
  return subject.name.find(word) != std::string::npos;
}

bool matches(std::string_view words, const Subject& subject) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (end > begin && word_matches(words.substr(begin, end - begin), subject)) return true;
    begin = end + 1;
  }
  return false;
}

template <class Value, std::size_t N>
Value first_match(const std::array<Rule<Value>, N>& rules, const Subject& subject,
                  Value otherwise) {
  for (const Rule<Value>& rule : rules) {
    if (matches(rule.words, subject)) return rule.value;
  }
  return otherwise;
}

}  // namespace

Owner kind_of(const KernelText& text) {
  return first_match(kKinds, subject_of(text), Owner::kOtherKernel);
}

std::string_view family_of(const KernelText& text) {
  return first_match(kFamilies, subject_of(text), std::string_view{});
}

}  // namespace culprit::known
