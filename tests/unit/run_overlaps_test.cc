#include <gtest/gtest.h>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::kUs;
using testing::TraceMaker;

Run built(const TraceMaker& maker) {
  auto run = build(maker.trace, {});
  EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().what);
  return run.ok() ? std::move(*run) : Run{};
}

Nanos sum_of_durations(const Run& run) {
  Nanos sum = 0;
  for (const Activity& a : run.activities) sum += a.end - a.begin;
  return sum;
}

// Hyperloom#1116: one kernel of a thousand is said to last two seconds.
class LateTimestamp : public ::testing::TestWithParam<int> {};

TEST_P(LateTimestamp, IsLimitedToTheNextStart) {
  const int late = GetParam();
  TraceMaker m;
  Nanos at = 0;
  for (int i = 0; i < 1'000; ++i) {
    const Nanos real = i == late ? 90 : 100;
    m.launched("k", at, at, i == late ? 2'100'000 : real);
    at += real;
  }
  const auto run = built(m);
  const store::Note* note = run.notes.find("late-timestamps");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 1);
  EXPECT_EQ(note->where, "stream 7");
  EXPECT_NE(note->message.find("2.1 s"), std::string::npos) << note->message;
  EXPECT_NE(note->message.find("ts " + std::to_string(late * 100) + " "), std::string::npos)
      << note->message;
  EXPECT_EQ(sum_of_durations(run), 99'990 * kUs);
  EXPECT_EQ(run.device_span.length(), 99'990 * kUs);
  EXPECT_FALSE(run.notes.has("overlap-legal"));
}

INSTANTIATE_TEST_SUITE_P(Anywhere, LateTimestamp, ::testing::Values(0, 499, 997, 998));

TEST(Overlaps, TheLastActivityCannotOutlastTheRecording) {
  TraceMaker m;
  for (int i = 0; i < 20; ++i) m.launched("k", 100 * i, 100 * i + 50, i == 19 ? 9'000'000 : 90);
  m.call("cudaDeviceSynchronize", 1'950, 50, 900);
  const auto run = built(m);
  ASSERT_NE(run.notes.find("impossible-duration"), nullptr);
  EXPECT_EQ(run.device_span.end, 2'000 * kUs);
  TraceMaker real;  // a long kernel under a sync that waits for it
  for (int i = 0; i < 20; ++i) real.launched("k", 100 * i, 100 * i + 50, i == 19 ? 9'000 : 90);
  real.call("cudaDeviceSynchronize", 1'950, 9'010, 900);
  EXPECT_FALSE(built(real).notes.has("impossible-duration"));
}

// The second late end must not make the first look like a neighbour of its kind.
TEST(Overlaps, LateEndsOneBehindTheOtherAreBothLimited) {
  TraceMaker m;
  for (int i = 0; i < 20; ++i)
    m.launched("k", 100 * i, 100 * i + 50, i == 17 || i == 18 ? 3'000'000 : 90);
  const auto run = built(m);
  ASSERT_NE(run.notes.find("late-timestamps"), nullptr);
  EXPECT_EQ(run.notes.find("late-timestamps")->count, 2);
  EXPECT_EQ(sum_of_durations(run), (18 * 90 + 2 * 100) * kUs);
}

TEST(Overlaps, ALastKernelLongerThanAShortRecordingIsReal) {
  TraceMaker m;
  for (int i = 0; i < 20; ++i) m.launched("k", 10 * i, 10 * i + 50, i == 19 ? 900 : 9);
  const auto run = built(m);
  EXPECT_FALSE(run.notes.has("impossible-duration"));
  EXPECT_EQ(run.activities.back().end - run.activities.back().begin, 900 * kUs);
}

// perfetto#4280: a dependent launch starts early, and only its neighbour is touched.
TEST(Overlaps, ShortOnesWithTheNeighbourAreLegal) {
  TraceMaker m;
  m.launched("P", 0, 0, 100);
  m.launched("S", 1, 92, 88);
  m.launched("T", 2, 181, 19);
  const auto run = built(m);
  EXPECT_FALSE(run.notes.has("late-timestamps"));
  ASSERT_NE(run.notes.find("overlap-legal"), nullptr);
  EXPECT_EQ(run.notes.find("overlap-legal")->count, 1);
  EXPECT_EQ(sum_of_durations(run), 207 * kUs);
  EXPECT_EQ(run.activities[0].end, 100 * kUs);
}

TEST(Overlaps, StreamsMayOverlapFreely) {
  TraceMaker m;
  m.launched("long", 0, 0, 30'000);
  m.stream = m.thread("0", "9");
  for (int i = 0; i < 20; ++i) m.launched("k", 1, 100 * i, 100);
  const auto run = built(m);
  EXPECT_FALSE(run.notes.has("late-timestamps"));
  EXPECT_FALSE(run.notes.has("overlap-legal"));
}

TEST(Overlaps, BranchesOfOneGraphMayOverlapAtAnyLength) {
  TraceMaker m;
  m.last_correlation = 10;
  m.call("cudaGraphLaunch", 0, 2, 1);
  m.kernel("long branch", 10, 500, 1);
  for (int i = 0; i < 20; ++i) m.kernel("k", 20 + 10 * i, 9, 1);
  m.launched("after", 3, 600, 10);
  const auto run = built(m);
  EXPECT_FALSE(run.notes.has("late-timestamps"));
  EXPECT_EQ(run.activities[0].end, 510 * kUs);
}

TEST(Overlaps, AKernelThatOutlastsItsGraphIsLate) {
  TraceMaker m;
  for (int replay = 0; replay < 3; ++replay) {
    m.call("hipGraphLaunch", 1'000 * replay, 2, replay + 1);
    for (int i = 0; i < 20; ++i)
      m.kernel("k", 1'000 * replay + 10 + 10 * i, replay == 1 && i == 3 ? 3'000'000 : 10,
               replay + 1);
  }
  const auto run = built(m);
  ASSERT_NE(run.notes.find("late-timestamps"), nullptr);
  EXPECT_EQ(run.notes.find("late-timestamps")->count, 1);
  EXPECT_EQ(sum_of_durations(run), 600 * kUs);
}

TEST(Overlaps, HostileTimesDoNotOverflow) {
  TraceMaker m;
  const Nanos most = Nanos{1} << 62;
  m.call("cudaLaunchKernel", 0, 2, 1);
  m.kernel_ns("a", 5, most, 1);
  m.kernel_ns("b", 6, most, 2);
  m.kernel_ns("c", most, most, 3);
  m.kernel_ns("d", -most, most, 4);
  const auto run = built(m);
  EXPECT_EQ(run.activities.size(), 2U);
  ASSERT_NE(run.notes.find("bad-number"), nullptr);
  EXPECT_EQ(run.notes.find("bad-number")->count, 2);
}

}  // namespace
}  // namespace culprit::run
