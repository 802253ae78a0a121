// Launch-bound and sync-bound steps, and waits that cost nothing.
#include <gtest/gtest.h>

#include "run_builder.h"
#include "verdict/verdict.h"

namespace culprit::verdict {
namespace {

using known::Owner;

class Host : public ::testing::Test {
 protected:
  Host() : host(builder.thread("31742")), gemm(builder.group("gemm", Owner::kGemm)) {}
  void launched(Nanos call_begin, Nanos begin, Nanos dur) {
    builder.kernel(gemm, begin, dur, builder.call("cudaLaunchKernel", host, call_begin, 4'000));
  }
  Verdict judged(evidence::Knowledge known = {}) {
    evidence = evidence::measure(builder.build(), std::move(known));
    return judge(evidence);
  }
  // 5 steps of 100 kernels of 5 us, launched every 50 us.
  void eager() {
    for (Nanos i = 0; i < 500; ++i) launched(i * 50'000 - 8'000, i * 50'000, 5'000);
    for (Nanos i = 0; i < 5; ++i) builder.step(i * 5'000'000, (i + 1) * 5'000'000, true, 16);
  }
  RunBuilder builder;
  store::ThreadId host;
  run::GroupId gemm;
  evidence::Evidence evidence;
};

TEST_F(Host, LaunchBoundStepIsTheHosts) {
  eager();
  const Verdict verdict = judged();
  ASSERT_EQ(verdict.suspects.size(), 1U);
  const Suspect& suspect = verdict.suspects[0];
  EXPECT_EQ(suspect.id, "host-launch");
  EXPECT_EQ(suspect.standing, Standing::kCulprit);
  EXPECT_EQ(suspect.confidence, Confidence::kLikely);
  // The gap behind the last kernel has no launch that ends it: host work, 9 us a step.
  EXPECT_NEAR(static_cast<double>(suspect.exposed_ns_per_step), 4'500'000.0, 10'000.0);
  EXPECT_EQ(suspect.gain.bound_by_after, "gpu");
  EXPECT_NEAR(suspect.gain.tokens_per_s_after, 16 / 500e-6, 500);
  EXPECT_NE(suspect.claim.find("100 launches"), std::string::npos);
}

TEST_F(Host, StepMeasuredWithoutAProfilerDecides) {
  eager();
  evidence::Knowledge known;
  known.tpot_ms = 4.8;
  EXPECT_EQ(judged(known).suspects.at(0).confidence, Confidence::kCertain);
  known.tpot_ms = 0.6;
  EXPECT_EQ(judged(known).suspects.at(0).confidence, Confidence::kPossible);
}

TEST_F(Host, WaitOverABusyDeviceIsRuledOut) {
  // Launches in the first 0.1 ms, then a wait until the device is done; the next step follows at once.
  for (Nanos step = 0; step < 4; ++step) {
    const Nanos at = step * 10'000'000;
    for (Nanos i = 0; i < 10; ++i) launched(at - 8'000 + i * 8'000, at + i * 995'000, 995'000);
    builder.call("cudaStreamSynchronize", host, at + 90'000, 9'870'000);
    builder.step(at, at + 10'000'000);
  }
  const Verdict verdict = judged();
  EXPECT_TRUE(verdict.suspects.empty());
  ASSERT_EQ(verdict.ruled_out.size(), 1U);
  EXPECT_EQ(verdict.ruled_out[0].hypothesis, "host-sync");
  EXPECT_GT(evidence.steps.host_wait_ns, 6'000'000);
}

TEST_F(Host, WaitThatDelaysTheNextLaunchIsNamedWithItsExposedPart) {
  // The device works 12.1 of 13 ms; the host waits for it, then takes 0.9 ms to launch again.
  for (Nanos step = 0; step < 4; ++step) {
    const Nanos at = step * 13'000'000;
    launched(at - 8'000, at, 12'100'000);
    builder.call("cudaStreamSynchronize", host, at + 50'000, 12'060'000);
    builder.step(at, at + 13'000'000);
  }
  const Verdict verdict = judged();
  ASSERT_EQ(verdict.suspects.size(), 1U);
  const Suspect& suspect = verdict.suspects[0];
  EXPECT_EQ(suspect.id, "host-sync");
  EXPECT_EQ(suspect.standing, Standing::kContributor);
  EXPECT_EQ(suspect.exposed_ns_per_step, 900'000);
  EXPECT_GT(suspect.ns_per_step, 9'000'000);
  EXPECT_EQ(suspect.gain.expected, 12'100'000);
  EXPECT_NE(suspect.claim.find("cudaStreamSynchronize"), std::string::npos);
}

TEST_F(Host, FewLateLaunchesAreNoSuspect) {
  // 7 % idle behind late launches: a profiler slows the host by more.
  for (Nanos i = 0; i < 100; ++i) launched(i * 100'000 - 5'000, i * 100'000, 93'000);
  for (Nanos i = 0; i < 10; ++i) builder.step(i * 1'000'000, (i + 1) * 1'000'000);
  const Verdict verdict = judged();
  EXPECT_GT(evidence.steps.mean, 0);
  EXPECT_TRUE(verdict.suspects.empty());
}

TEST_F(Host, IdleStepIsNotHealthyHoweverBusyItsSpan) {
  launched(-8'000, 0, 45'000);
  builder.step(0, 18'000'000);
  const Verdict verdict = judged();
  EXPECT_DOUBLE_EQ(evidence.steps.device_busy, 1.0);
  EXPECT_TRUE(verdict.healthy.empty());
}

TEST_F(Host, BusyDeviceHasNoSuspects) {
  for (Nanos i = 0; i < 100; ++i) launched(i * 20'000 - 900'000, i * 100'000, 99'000);
  for (Nanos i = 0; i < 10; ++i) builder.step(i * 1'000'000, (i + 1) * 1'000'000);
  const Verdict verdict = judged();
  EXPECT_TRUE(verdict.suspects.empty());
  EXPECT_EQ(verdict.headline.rfind("no single culprit", 0), 0U);
}

TEST(Rules, EachSaysWhatItNeedsAndWhatDisprovesIt) {
  const std::vector<Rule> all = rules();
  ASSERT_GE(all.size(), 3U);
  for (const Rule& rule : all) {
    EXPECT_FALSE(rule.id.empty());
    EXPECT_FALSE(rule.looks_for.empty());
    EXPECT_FALSE(rule.needs.empty());
    EXPECT_FALSE(rule.disproved_by.empty());
  }
}

}  // namespace
}  // namespace culprit::verdict
