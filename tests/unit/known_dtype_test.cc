#include "known/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "known/owner.h"

namespace culprit::known {
namespace {

TEST(Dtype, ReadsTheSpellingsOfTorchCudaAndCutlass) {
  EXPECT_EQ(dtype_from_torch("c10::Float8_e4m3fn"), Dtype::kFp8E4m3);
  EXPECT_EQ(dtype_from_torch("c10::BFloat16"), Dtype::kBf16);
  EXPECT_EQ(dtype_from_torch("__hip_bfloat16"), Dtype::kBf16);
  EXPECT_EQ(dtype_from_torch("cutlass::float_e2m1_t"), Dtype::kFp4);
  EXPECT_EQ(dtype_from_torch("unsigned char"), Dtype::kU8);
  EXPECT_EQ(dtype_from_torch("long int"), Dtype::kI64);
  EXPECT_EQ(dtype_from_torch("float"), Dtype::kF32);
  EXPECT_EQ(dtype_from_torch("ScalarList"), Dtype::kUnknown);
  EXPECT_EQ(dtype_from_torch(""), Dtype::kUnknown);
}

TEST(Dtype, ReadsTheWordsOfConfigsAndFlags) {
  EXPECT_EQ(dtype_from_config("fp8"), Dtype::kFp8E4m3);
  EXPECT_EQ(dtype_from_config("FP8"), Dtype::kFp8E4m3);
  EXPECT_EQ(dtype_from_config("float8_e4m3fn"), Dtype::kFp8E4m3);
  EXPECT_EQ(dtype_from_config("fp8_e5m2"), Dtype::kFp8E5m2);
  EXPECT_EQ(dtype_from_config("torch.bfloat16"), Dtype::kBf16);
  EXPECT_EQ(dtype_from_config("NVFP4"), Dtype::kFp4);
  EXPECT_EQ(dtype_from_config("auto"), Dtype::kUnknown);
  EXPECT_EQ(dtype_from_config("bf61"), Dtype::kUnknown);
}

TEST(Dtype, NamesReadBackAndSizesAreTheirs) {
  for (int i = 1; i <= static_cast<int>(Dtype::kBool); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_from_config(dtype_name(dtype)), dtype) << dtype_name(dtype);
    EXPECT_GT(bits(dtype), 0);
  }
  EXPECT_EQ(bits(Dtype::kFp4), 4);
  EXPECT_EQ(bits(Dtype::kFp8E5m2), 8);
  EXPECT_EQ(bits(Dtype::kBf16), 16);
  EXPECT_EQ(bits(Dtype::kUnknown), 0);
  EXPECT_EQ(dtype_name(static_cast<Dtype>(200)), "unknown");
}

TEST(Owner, EveryOwnerHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i < kOwnerCount; ++i) names.insert(owner_name(static_cast<Owner>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kOwnerCount));
  EXPECT_EQ(owner_name(Owner::kMoeGemm), "moe-gemm");
  EXPECT_EQ(owner_name(Owner::kIdleHostLaunch), "idle-host-launch");
  EXPECT_EQ(owner_name(Owner::kUnexplained), "unexplained");
  EXPECT_EQ(owner_name(Owner::kReduce), "reduce");
}

}  // namespace
}  // namespace culprit::known
