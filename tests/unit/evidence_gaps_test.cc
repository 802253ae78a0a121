// Each rule that gives an idle nanosecond its owner, by one small run that it decides.
#include <gtest/gtest.h>

#include "evidence/measures.h"
#include "run_builder.h"

namespace culprit::evidence {
namespace {

using known::Owner;

// One host thread and one kernel group; times in ns.
class Gaps : public ::testing::Test {
 protected:
  Gaps() : host(builder.thread("31742")), gemm(builder.group("gemm", Owner::kGemm)) {}
  void launched(Nanos call_begin, Nanos call_dur, Nanos begin, Nanos dur) {
    builder.kernel(gemm, begin, dur, builder.call("cudaLaunchKernel", host, call_begin, call_dur));
  }
  std::vector<Gap> gaps(Nanos end) {
    builder.step(0, end);
    builder.build();
    return measure_gaps(Basis(builder.run()));
  }
  RunBuilder builder;
  store::ThreadId host;
  run::GroupId gemm;
};

TEST_F(Gaps, LateLaunchIsHostLaunch) {
  launched(-10'000, 4'000, 0, 20'000);
  launched(50'000, 4'000, 57'000, 3'000);
  const std::vector<Gap> found = gaps(60'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kIdleHostLaunch);
  EXPECT_EQ(found[0].begin, 20'000);
  EXPECT_EQ(found[0].end, 57'000);
  EXPECT_EQ(found[0].call, store::CallRow(1));
  EXPECT_EQ(found[0].before, run::ActivityId(0));
  EXPECT_EQ(found[0].after, run::ActivityId(1));
}

TEST_F(Gaps, LaunchThatReturnsInTheGapIsHostLaunch) {
  launched(-10'000, 4'000, 0, 20'000);
  launched(15'000, 30'000, 47'000, 3'000);
  EXPECT_EQ(gaps(50'000)[0].owner, Owner::kIdleHostLaunch);
}

TEST_F(Gaps, QueuedLaunchIsUnexplained) {
  launched(-10'000, 4'000, 0, 200'000);
  launched(-5'000, 4'000, 201'500, 3'000);
  const std::vector<Gap> found = gaps(204'500);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kUnexplained);
}

TEST_F(Gaps, KernelWithoutALaunchInTheFileIsUnexplained) {
  launched(-10'000, 4'000, 0, 20'000);
  builder.kernel(gemm, 60'000, 3'000);
  EXPECT_EQ(gaps(63'000)[0].owner, Owner::kUnexplained);
}

TEST_F(Gaps, WaitThatOverlapsTheStartOfTheGapIsHostSync) {
  launched(-10'000, 4'000, 0, 900'000);
  const store::CallRow wait = builder.call("cudaStreamSynchronize", host, 20'000, 890'000);
  launched(1'200'000, 4'000, 1'210'000, 5'000);
  const std::vector<Gap> found = gaps(1'215'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kIdleHostSync);
  EXPECT_EQ(found[0].call, wait);
}

TEST_F(Gaps, WaitThatEndedLongBeforeTheGapIsNotToBlame) {
  launched(-10'000, 4'000, 0, 900'000);
  builder.call("cudaStreamSynchronize", host, 20'000, 80'000);
  launched(1'200'000, 4'000, 1'210'000, 5'000);
  EXPECT_NE(gaps(1'215'000)[0].owner, Owner::kIdleHostSync);
}

TEST_F(Gaps, BlockingCopyHoldsTheNextLaunchBack) {
  const run::GroupId copy = builder.group("Memcpy DtoH (Device -> Pageable)", Owner::kMemcpy);
  launched(-10'000, 4'000, 0, 900'000);
  const store::CallRow call = builder.call("cudaMemcpyAsync", host, 10'000, 895'000);
  builder.kernel(copy, 901'000, 2'000, call);
  launched(1'200'000, 4'000, 1'210'000, 5'000);
  const std::vector<Gap> found = gaps(1'215'000);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].owner, Owner::kUnexplained);  // the copy stood in the queue
  EXPECT_EQ(found[1].owner, Owner::kIdleHostSync);
  EXPECT_EQ(found[1].call, call);
}

TEST_F(Gaps, PinnedCopyDoesNotHoldTheHost) {
  const run::GroupId copy = builder.group("Memcpy DtoH (Device -> Pinned)", Owner::kMemcpy);
  launched(-10'000, 4'000, 0, 900'000);
  builder.kernel(copy, 901'000, 2'000, builder.call("cudaMemcpyAsync", host, 10'000, 5'000));
  launched(1'200'000, 4'000, 1'210'000, 5'000);
  const std::vector<Gap> found = gaps(1'215'000);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[1].owner, Owner::kIdleHostSync);
}

TEST_F(Gaps, LongSilenceIsHostWork) {
  for (Nanos i = 0; i < 10; ++i) launched(i * 10'000 - 5'000, 4'000, i * 10'000, 9'000);
  launched(1'100'000, 4'000, 1'107'000, 3'000);
  const std::vector<Gap> found = gaps(1'110'000);
  EXPECT_EQ(found.back().owner, Owner::kIdleHostWork);
}

TEST_F(Gaps, BusyHostInALongGapIsHostLaunch) {
  for (Nanos i = 0; i < 10; ++i) launched(i * 10'000 - 5'000, 4'000, i * 10'000, 9'000);
  for (Nanos i = 0; i < 40; ++i) {
    builder.call("cudaEventRecord", host, 100'000 + i * 25'000, 2'000);
  }
  launched(1'100'000, 4'000, 1'107'000, 3'000);
  EXPECT_EQ(gaps(1'110'000).back().owner, Owner::kIdleHostLaunch);
}

TEST_F(Gaps, GapInsideOneReplayIsGraph) {
  const store::CallRow replay = builder.call("cudaGraphLaunch", host, -50'000, 20'000);
  const store::CallRow second = builder.call("cudaGraphLaunch", host, 30'000, 20'000);
  builder.kernel(gemm, 0, 5'000, replay, {}, true);
  builder.kernel(gemm, 6'000, 5'000, replay, {}, true);
  builder.kernel(gemm, 60'000, 5'000, second, {}, true);
  const std::vector<Gap> found = gaps(65'000);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].owner, Owner::kGraph);
  EXPECT_EQ(found[1].owner, Owner::kIdleHostLaunch);
}

TEST_F(Gaps, ReplayWithoutRecordedKernelsIsGraph) {
  launched(-10'000, 4'000, 0, 20'000);
  const store::CallRow replay = builder.call("cudaGraphLaunch", host, 5'000, 20'000);
  builder.run().graphs_without_kernels.push_back(replay);
  launched(30'000, 4'000, 900'000, 3'000);
  const std::vector<Gap> found = gaps(903'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kGraph);
}

TEST_F(Gaps, WhereAKernelIsLostTheDeviceMayHaveWorked) {
  for (const bool lost : {false, true}) {
    builder = RunBuilder();
    host = builder.thread("7");
    gemm = builder.group("gemm", Owner::kGemm);
    launched(-10'000, 4'000, 0, 20'000);
    const store::CallRow call = builder.call("cudaLaunchKernel", host, 10'000, 4'000);
    if (lost) builder.run().launches_without_kernel.push_back(call);
    launched(90'000, 4'000, 100'000, 3'000);
    const std::vector<Gap> found = gaps(103'000);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].owner, lost ? Owner::kUnexplained : Owner::kIdleHostLaunch);
  }
}

TEST_F(Gaps, AKernelBeforeItsLaunchTellsNothingOfTheHost) {
  launched(-10'000, 4'000, 0, 20'000);
  launched(102'300, 7'000, 100'000, 9'000);
  const std::vector<Gap> found = gaps(109'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kUnexplained);
}

TEST_F(Gaps, LateLaunchThatTheDeviceThenHeldUpIsCutInTwo) {
  launched(-10'000, 4'000, 0, 20'000);
  launched(40'000, 4'000, 5'000'000, 3'000);
  const std::vector<Gap> found = gaps(5'003'000);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].owner, Owner::kIdleHostLaunch);
  EXPECT_EQ(found[0].end, found[1].begin);
  EXPECT_GT(found[0].end, 44'000);
  EXPECT_LT(found[0].end, 100'000);
  EXPECT_EQ(found[1].owner, Owner::kUnexplained);
  EXPECT_EQ(found[1].end, 5'000'000);
}

TEST_F(Gaps, StepThatEndsWithItsMarkBlamesTheThreadThatLaunched) {
  launched(-10'000, 4'000, 0, 20'000);
  builder.call("cudaDeviceSynchronize", host, 0, 21'000);
  const std::vector<Gap> found = gaps(90'000);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kIdleHostSync);
  EXPECT_FALSE(found[0].after.valid());
}

TEST_F(Gaps, LaunchRecordedAfterItsKernelIsClockSkewNotACrash) {
  launched(-10'000, 4'000, 0, 20'000);
  launched(32'300, 4'000, 30'000, 9'000);
  EXPECT_EQ(gaps(39'000)[0].owner, Owner::kUnexplained);
}

// Ten equal steps; `hole` ns without any event in front of the launch of the first `holes` of them.
class Stalls : public Gaps {
 protected:
  std::vector<Gap> run_with_hole(Nanos hole, int holes, std::string_view filler = {}) {
    Nanos at = 0;
    for (int i = 0; i < 10; ++i) {
      const Nanos begin = at;
      if (i > 0 && i <= holes) {
        if (!filler.empty()) builder.op(filler, host, at + 1'000, hole - 20'000);
        at += hole;
      }
      builder.op("aten::mm", host, at - 8'000, 7'000);
      launched(at - 5'000, 4'000, at, 10'000'000);
      at += 10'000'000;
      builder.step(begin, at);
    }
    builder.build();
    return measure_gaps(Basis(builder.run()));
  }
};

TEST_F(Stalls, RareHoleWithoutAnyEventIsAStall) {
  const std::vector<Gap> found = run_with_hole(200'000'000, 1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kIdleStall);
}

TEST_F(Stalls, HoleFilledByAnOperatorIsHostWork) {
  const std::vector<Gap> found = run_with_hole(200'000'000, 1, "aten::sort");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].owner, Owner::kIdleHostWork);
}

TEST_F(Stalls, ShortHoleIsHostWork) {
  EXPECT_EQ(run_with_hole(3'000'000, 1)[0].owner, Owner::kIdleHostWork);
}

TEST_F(Stalls, HoleInEveryStepIsHostWork) {
  for (const Gap& gap : run_with_hole(200'000'000, 9)) {
    EXPECT_EQ(gap.owner, Owner::kIdleHostWork);
  }
}

}  // namespace
}  // namespace culprit::evidence
