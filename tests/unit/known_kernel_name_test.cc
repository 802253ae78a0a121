// PyTorch's own kernels: what their template arguments say.
#include "known/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

#include "known/kernel_text.h"
#include "known/launch_geometry.h"

namespace culprit::known {
namespace {

// "direct_copy_kernel_cuda" of a current tree, its lambda on `type` (12: BFloat16, 7: float).
std::string direct_copy(const std::string& type) {
  return "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() "
         "const::{lambda()#12}::operator()() const::{lambda(" +
         type + ")#1}";
}

const std::string kPoolCast =
    "void at::native::unrolled_elementwise_kernel<" + direct_copy("c10::BFloat16") +
    ", std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
    "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, "
    "at::native::memory::StoreWithCast<1> >(int, " +
    direct_copy("c10::BFloat16") +
    ", std::array<char*, 2ul>, TrivialOffsetCalculator<1, unsigned int>)";

std::string strided(const std::string& impl, const std::string& functor, int threads = 128,
                    int per_thread = 4, const std::string& kernel = "elementwise_kernel",
                    const std::string& lambda = "{lambda(int)#1}") {
  const std::string wrapped = "at::native::" + impl + "<" + functor +
                              ">(at::TensorIteratorBase&, " + functor + " const&)::" + lambda;
  return "void at::native::" + kernel + "<" + std::to_string(threads) + ", " +
         std::to_string(per_thread) + ", " + wrapped + ">(int, " + wrapped + ")";
}

TEST(AtenKernel, TheWholePoolCastSaysDestinationCastAndWorkPerBlock) {
  const KernelInfo info = decode_kernel(kPoolCast);
  EXPECT_EQ(info.kind, Owner::kCast);
  EXPECT_EQ(info.short_name, "unrolled_elementwise_kernel copy -> bf16");
  EXPECT_EQ(info.family, "aten-elementwise");
  EXPECT_EQ(info.dtype_out, Dtype::kBf16);
  EXPECT_EQ(info.dtype_in, Dtype::kUnknown);  // the source is not in the name
  EXPECT_TRUE(info.is_copy && info.casts && info.contiguous);
  EXPECT_EQ(info.grid_rule, GridRule::kLinear);
  EXPECT_EQ(info.threads_per_block, 128);
  EXPECT_EQ(info.work_per_block, 512);
}

TEST(AtenKernel, NsightSpellsTheSameKernelInItsOwnWay) {
  const std::string lambdas =
      "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance "
      "3)]::operator ()() "
      "const::[lambda() (instance 12)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)]";
  const KernelInfo info = decode_kernel(
      "void at::native::unrolled_elementwise_kernel<" + lambdas +
      ", std::array<char *, (unsigned long)2>, (int)4, TrivialOffsetCalculator<(int)1, unsigned "
      "int>, "
      "TrivialOffsetCalculator<(int)1, unsigned int>, at::native::memory::LoadWithCast<(int)1>, "
      "at::native::memory::StoreWithCast<(int)1>>(int, T1, T2, T4, T5, T6, T7)");
  EXPECT_EQ(info.short_name, "unrolled_elementwise_kernel copy -> bf16");
  EXPECT_EQ(info.kind, Owner::kCast);
  EXPECT_EQ(info.work_per_block, 512);

  const KernelInfo layout = decode_kernel(
      "void at::native::elementwise_kernel<(int)128, (int)2, void "
      "at::native::gpu_kernel_impl_nocast<" +
      lambdas + ">(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)");
  EXPECT_EQ(layout.kind, Owner::kCopy);
  EXPECT_EQ(layout.work_per_block, 256);
}

TEST(AtenKernel, AStridedCopyOfOneTypeIsALayoutCopy) {
  const KernelInfo info =
      decode_kernel(strided("gpu_kernel_impl_nocast", direct_copy("c10::BFloat16")));
  EXPECT_EQ(info.kind, Owner::kCopy);
  EXPECT_FALSE(info.casts);
  EXPECT_FALSE(info.contiguous);
  EXPECT_EQ(info.short_name, "elementwise_kernel strided copy bf16");
  EXPECT_EQ(info.work_per_block, 512);
  EXPECT_EQ(info.work_per_thread, 0);  // both integers are in the name
}

TEST(AtenKernel, AStridedCopyThroughGpuKernelImplCasts) {
  const KernelInfo info = decode_kernel(strided("gpu_kernel_impl", direct_copy("c10::BFloat16")));
  EXPECT_EQ(info.kind, Owner::kCast);
  EXPECT_FALSE(info.contiguous);
  EXPECT_EQ(info.dtype_out, Dtype::kBf16);
}

// In trees before 2.1 gpu_kernel_impl also names the path without a cast; with two values per
// thread it is that one.
TEST(AtenKernel, OldTreesNameBothPathsGpuKernelImpl) {
  const std::string old_copy =
      "at::native::(anonymous "
      "namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::"
      "operator()() const::{lambda()#14}::operator()() const::{lambda(float)#1}";
  EXPECT_EQ(decode_kernel(strided("gpu_kernel_impl", old_copy, 128, 2)).kind, Owner::kCopy);
  EXPECT_EQ(decode_kernel(strided("gpu_kernel_impl", old_copy, 128, 4)).kind, Owner::kCast);
  const std::string old_half =
      "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
      "const::{lambda()#10}::operator()() const::{lambda(c10::Half)#1}";
  EXPECT_EQ(decode_kernel(strided("gpu_kernel_impl", old_half)).kind, Owner::kCopy);
  EXPECT_EQ(decode_kernel(strided("gpu_kernel_impl", old_half, 128, 4, "elementwise_kernel",
                                  "{lambda(int)#2}"))
                .kind,
            Owner::kCast);
}

TEST(AtenKernel, RocmCastsContiguousTensorsWith512Threads) {
  const KernelInfo info = decode_kernel(strided("gpu_kernel_impl", direct_copy("float"), 512, 1));
  EXPECT_EQ(info.kind, Owner::kCast);
  EXPECT_TRUE(info.contiguous);
  EXPECT_EQ(info.threads_per_block, 512);
  EXPECT_EQ(info.work_per_block, 512);
}

TEST(AtenKernel, TheManuallyUnrolledKernelPrintsItsWork) {
  const KernelInfo info =
      decode_kernel(strided("gpu_kernel_impl_nocast", direct_copy("c10::BFloat16"), 128, 8,
                            "elementwise_kernel_manual_unroll", "{lambda(int, bool)#1}"));
  EXPECT_EQ(info.kind, Owner::kCopy);
  EXPECT_EQ(info.work_per_block, 1024);
  const KernelInfo cast =
      decode_kernel(strided("gpu_kernel_impl", direct_copy("c10::BFloat16"), 128, 4,
                            "elementwise_kernel_manual_unroll", "{lambda(int, bool)#1}"));
  EXPECT_EQ(cast.kind, Owner::kCast);
}

TEST(AtenKernel, DedicatedCopiesNameTheirSource) {
  const KernelInfo info = decode_kernel(
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"
      "::{lambda(float)#1}, std::array<char*, 2ul> >(int, F, std::array<char*, 2ul>)");
  EXPECT_EQ(info.kind, Owner::kCast);
  EXPECT_EQ(info.dtype_in, Dtype::kF32);
  EXPECT_EQ(info.dtype_out, Dtype::kBf16);
  EXPECT_EQ(info.short_name, "vectorized_elementwise_kernel copy f32 -> bf16");
  const KernelInfo logits = decode_kernel(
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::bfloat16tofloat32_copy_kernel_cuda"
      "(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)");
  EXPECT_EQ(logits.dtype_in, Dtype::kBf16);
  EXPECT_EQ(logits.dtype_out, Dtype::kF32);
  const KernelInfo fp8 = decode_kernel(
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)"
      "::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> "
      ">(int)");
  EXPECT_EQ(fp8.kind, Owner::kCast);
  EXPECT_EQ(fp8.dtype_in, Dtype::kBf16);
  EXPECT_EQ(fp8.dtype_out, Dtype::kUnknown);  // four FP8 types share this name
}

std::string vectorized(int vec, const std::string& functor, const std::string& pointers) {
  return "void at::native::vectorized_elementwise_kernel<" + std::to_string(vec) + ", " + functor +
         ", " + pointers + " >(int, " + functor + ", " + pointers + ")";
}

TEST(AtenKernel, TheVectorizedKernelGivesItsWorkOnlyWhereTheBuildIsCertain) {
  const std::string add = "at::native::CUDAFunctor_add<c10::BFloat16>";
  const KernelInfo old = decode_kernel(vectorized(4, add, "at::detail::Array<char*, 3>"));
  EXPECT_EQ(old.work_per_block, 512);
  EXPECT_EQ(old.work_per_thread, 4);
  const KernelInfo wide = decode_kernel(vectorized(8, add, "std::array<char*, 3ul>"));
  EXPECT_EQ(wide.work_per_block, 1024);
  EXPECT_EQ(wide.work_per_thread, 0);
  // 512 until 2.6, 1024 since 2.7, and the name is the same.
  const KernelInfo undecided = decode_kernel(vectorized(4, add, "std::array<char*, 3ul>"));
  EXPECT_EQ(undecided.grid_rule, GridRule::kNone);
  EXPECT_EQ(undecided.work_per_block, 0);
  // A fill of bytes does 16 per thread, any other byte kernel 8.
  EXPECT_EQ(decode_kernel(
                vectorized(8, "at::native::FillFunctor<unsigned char>", "std::array<char*, 1ul>"))
                .grid_rule,
            GridRule::kNone);
}

TEST(AtenKernel, FunctorsAreNamedAndTyped) {
  const struct {
    const char* functor;
    const char* short_name;
    Owner kind;
  } kCases[] = {
      {"at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
       "at::native::binary_internal::MulFunctor<float> >",
       "vectorized_elementwise_kernel mul bf16", Owner::kElementwise},
      {"at::native::AUnaryFunctor<long, long, bool, at::native::(anonymous "
       "namespace)::CompareEqFunctor<long> >",
       "vectorized_elementwise_kernel compare_eq bool", Owner::kElementwise},
      {"at::native::(anonymous "
       "namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::"
       "{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}",
       "vectorized_elementwise_kernel silu bf16", Owner::kActivation},
      {"at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
       "at::native::GeluType)::{lambda()#1}::operator()() const::"
       "{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
       "vectorized_elementwise_kernel gelu bf16", Owner::kActivation},
      {"at::native::CUDAFunctorOnSelf_add<int>", "vectorized_elementwise_kernel add i32",
       Owner::kElementwise},
      {"at::native::(anonymous "
       "namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::"
       "{lambda(bool, float, float)#1}",
       "vectorized_elementwise_kernel where f32", Owner::kElementwise},
      {"at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar "
       "const&)::{lambda()#1}::operator()() "
       "const::{lambda(c10::Half, bool)#1}",
       "vectorized_elementwise_kernel masked_fill f16", Owner::kElementwise},
  };
  for (const auto& c : kCases) {
    const KernelInfo info = decode_kernel(vectorized(4, c.functor, "std::array<char*, 3ul>"));
    EXPECT_EQ(info.short_name, c.short_name);
    EXPECT_EQ(info.kind, c.kind) << c.functor;
  }
}

TEST(AtenKernel, ReductionsNameTheirOperationAndResult) {
  const KernelInfo mean = decode_kernel(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::MeanOps<float, float, float, float>, "
      "unsigned int, float, 4, 4> >(at::native::ReduceOp<float>)");
  EXPECT_EQ(mean.kind, Owner::kReduce);
  EXPECT_EQ(mean.short_name, "reduce_kernel mean f32");
  const KernelInfo argmax = decode_kernel(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(R)");
  EXPECT_EQ(argmax.kind, Owner::kSampling);
  EXPECT_EQ(argmax.short_name, "reduce_kernel argmax i64");
  const KernelInfo sum = decode_kernel(
      "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<long, "
      "at::native::func_wrapper_t<long, "
      "at::native::sum_functor<long, long, long>::operator ()(at::TensorIterator &)::[lambda(long, "
      "long) (instance 1)]>, "
      "unsigned int, long, (int)4>>(T3)");
  EXPECT_EQ(sum.short_name, "reduce_kernel sum i64");
}

TEST(AtenKernel, GathersAndForeachCopies) {
  const KernelInfo gather = decode_kernel(
      "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, "
      "long, long, bool)");
  EXPECT_TRUE(gather.is_gather);
  EXPECT_EQ(gather.kind, Owner::kCopy);
  EXPECT_EQ(gather.grid_rule, GridRule::kRowsPerBlock);
  const KernelInfo index = decode_kernel(
      "void at::native::index_elementwise_kernel<128, 4, "
      "at::native::gpu_index_kernel<at::native::index_kernel_impl<"
      "at::native::OpaqueType<2> >(at::TensorIteratorBase&, c10::ArrayRef<long>)::{lambda(char*, "
      "char const*, long)#1}>("
      "at::TensorIteratorBase&)::{lambda(int)#1}>(long, F)");
  EXPECT_TRUE(index.is_gather);
  EXPECT_EQ(index.kind, Owner::kCopy);
  EXPECT_EQ(index.dtype_out, Dtype::kUnknown);
  EXPECT_EQ(index.work_per_block, 512);
  const KernelInfo foreach = decode_kernel(
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
      "namespace)::TensorListMetadata<2>, "
      "at::native::(anonymous namespace)::CopyFunctor<int, long, 2, 1, 1>, at::native::Copy<int, "
      "long> >(M)");
  EXPECT_EQ(foreach.kind, Owner::kCast);
  EXPECT_EQ(foreach.short_name, "multi_tensor_apply_kernel copy i64 -> i32");
}

TEST(KernelText, FindsTheNameBehindReturnTypesScopesAndMangling) {
  const KernelText guarded(
      "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
      "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)");
  EXPECT_EQ(guarded.head, "vllm::fused_add_rms_norm_kernel");
  EXPECT_EQ(guarded.args, "c10::BFloat16, 8");
  const KernelText anonymous(
      "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous "
      "namespace)::StoreKVCacheParams)");
  EXPECT_EQ(anonymous.base, "store_kvcache");
  const KernelText mangled(
      "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_"
      "S4_diiiiiiib");
  EXPECT_EQ(mangled.head, "aiter::add_rmsnorm_quant_kernel");
  EXPECT_EQ(mangled.args.substr(0, 16), "bf16 bf16 256 16");
  const KernelText plain("my_kernel.kd");
  EXPECT_EQ(plain.base, "my_kernel");
}

TEST(KernelName, AnyBytesAreSafeAndShortNamesStayShort) {
  const std::string deep(200'000, '<');
  const std::string nested =
      "void at::native::elementwise_kernel<128, 4, " + std::string(70'000, '(') + ">";
  std::string half_utf8(58, 'k');
  half_utf8 += "\xc3\xa9\xc3\xa9";
  for (const std::string& name :
       {std::string(), std::string("("), std::string("<>"), std::string("void "), std::string("_Z"),
        std::string("_ZN99999999999999999999x"), std::string("_ZN5"), deep, nested, half_utf8,
        std::string("at::native::reduce_kernel<"), std::string("Cijk_"), std::string("x\0y", 3),
        std::string("void at::native::vectorized_elementwise_kernel<4, , >"), std::string("bmm_"),
        std::string("fmhaX_Qkv"), std::string("[lambda(") + std::string(1000, '[')}) {
    const KernelInfo info = decode_kernel(name);
    EXPECT_LE(info.short_name.size(), 60u);
    const bool cut_inside = !info.short_name.empty() && info.short_name.size() > 3 &&
                            info.short_name[info.short_name.size() - 4] == '\xc3';
    EXPECT_FALSE(cut_inside);
  }
}

TEST(CopyName, DirectionsInAllSpellings) {
  using Direction = CopyInfo::Direction;
  EXPECT_EQ(decode_copy("Memcpy DtoH (Device -> Pageable)").direction, Direction::kDtoH);
  EXPECT_TRUE(decode_copy("Memcpy DtoH (Device -> Pageable)").pageable);
  EXPECT_FALSE(decode_copy("Memcpy HtoD (Pinned -> Device)").pageable);
  EXPECT_EQ(decode_copy("Memcpy HtoD (Pinned -> Device)").direction, Direction::kHtoD);
  EXPECT_EQ(decode_copy("Memcpy DtoD (Device -> Device)").direction, Direction::kDtoD);
  EXPECT_EQ(decode_copy("[CUDA memcpy Device-to-Host]").direction, Direction::kDtoH);
  EXPECT_EQ(decode_copy("CopyHostToDevice").direction, Direction::kHtoD);
  EXPECT_EQ(decode_copy("Memcpy PtoP (Device -> Device)").direction, Direction::kPtoP);
  EXPECT_EQ(decode_copy("Memset (Device)").direction, Direction::kUnknown);
}

}  // namespace
}  // namespace culprit::known
