// Which step a slice is about, and how it is packed.
#include "slice/slice.h"

#include <gtest/gtest.h>

#include "run_builder.h"

namespace culprit::slice {
namespace {

// Five steps of 100 ns, the fourth of 400; a prefill between the second and the third.
const run::Run& five_steps(RunBuilder& builder) {
  const run::GroupId gemm = builder.group("gemm", known::Owner::kGemm);
  Nanos at = 0;
  for (const Nanos length : {100, 110, 5'000, 105, 400, 100}) {
    builder.kernel(gemm, at, length / 2);
    builder.step(at, at + length);
    at += length;
  }
  builder.run().steps[2].kind = run::StepKind::kPrefill;
  builder.run().steps[2].used = false;
  return builder.build();
}

TEST(Window, StepsAreCountedAmongTheMainKind) {
  RunBuilder builder;
  const run::Run& run = five_steps(builder);
  const auto third = window_of_steps(run, 2, 2);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->first, 3U);
  EXPECT_EQ(third->span, (store::Span{5'210, 5'315}));
  const auto across = window_of_steps(run, 1, 2);
  ASSERT_TRUE(across.ok());
  EXPECT_EQ(across->last - across->first, 2U) << "the prefill between them is part of it";
  EXPECT_EQ(describe(run, *across), "steps 1 to 2 of ");
  EXPECT_FALSE(window_of_steps(run, 5, 5).ok());
  EXPECT_FALSE(window_of_steps(run, 3, 2).ok());
}

TEST(Window, TheMedianStepIsOneOfThoseThatCount) {
  RunBuilder builder;
  const run::Run& run = five_steps(builder);
  const auto median = window_of_median(run);
  ASSERT_TRUE(median.ok());
  EXPECT_EQ(run.steps[median->first].length(), 105);
}

TEST(Gzip, TheSameTextGivesTheSameBytesWhichSayWhoWroteThem) {
  const std::string text(100'000, 'a');
  const auto one = gzip(text), two = gzip(text);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(*one, *two);
  EXPECT_LT(one->size(), 1'000U);
  EXPECT_TRUE(is_gzip_of_slice(std::string_view(*one).substr(0, 64)));
  EXPECT_FALSE(is_gzip_of_slice("\x1f\x8b\x08\x08someone else's"));
  EXPECT_FALSE(is_gzip_of_slice(""));
}

}  // namespace
}  // namespace culprit::slice
