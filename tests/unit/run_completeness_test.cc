#include <gtest/gtest.h>

#include <fmt/format.h>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::TraceMaker;

void expect_unusable(const TraceMaker& m, std::string_view note_code) {
  const auto run = build(m.trace, {});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, Error::Code::kUnusable);
  EXPECT_EQ(run.error().note_code, note_code) << run.error().what;
  EXPECT_EQ(run.error().where, "trace.json");
  EXPECT_FALSE(run.error().hint.empty());
}

void add_launches(TraceMaker& m, int launches, int with_kernel) {
  for (int i = 0; i < launches; ++i) {
    m.call("cudaLaunchKernel", 100 + 10 * i, 2, ++m.last_correlation);
    if (i < with_kernel) m.kernel("k", 100'000 + 10 * i, 5, m.last_correlation);
  }
}

TEST(Completeness, ATraceWithoutDeviceActivityIsRefused) {
  TraceMaker empty;
  expect_unusable(empty, "no-device-activity");
  TraceMaker launches_only;
  add_launches(launches_only, 77, 0);
  expect_unusable(launches_only, "no-device-activity");
}

TEST(Completeness, ACaptureTraceIsRefused) {
  TraceMaker by_call;
  by_call.call("hipStreamBeginCapture", 50, 2, 9'000);
  add_launches(by_call, 428, 7);
  by_call.call("hipStreamEndCapture", 90'000, 2, 9'001);
  expect_unusable(by_call, "capture-trace");
  TraceMaker by_mark;
  by_mark.mark("capture_32_FULL", 0, 90'000);
  add_launches(by_mark, 428, 7);
  expect_unusable(by_mark, "capture-trace");
}

TEST(Completeness, ATraceThatLostMostKernelsIsRefused) {
  TraceMaker m;
  add_launches(m, 100, 40);
  expect_unusable(m, "kernels-missing");
}

// A window cut from a run whose host is ahead: kernels in front of the first launch, launches behind the last kernel.
TEST(Completeness, AQueueAtBothEndsLosesNothing) {
  for (const int waiting : {60, 59}) {
    TraceMaker m;
    for (int i = 0; i < waiting; ++i) m.kernel("k", 50'000 + 10 * i, 5, 9'000 + i);
    add_launches(m, 100, 40);
    if (waiting < 60) {
      expect_unusable(m, "kernels-missing");
    } else {
      const auto run = build(m.trace, {});
      ASSERT_TRUE(run.ok()) << run.error().what;
      EXPECT_FALSE(run->notes.has("kernels-missing"));
    }
  }
}

TEST(Completeness, EachProcessStopsOnItsOwn) {
  for (const bool one_process : {false, true}) {
    TraceMaker m;
    add_launches(m, 150, 149);
    m.host = one_process ? m.host : m.thread("4002", "4002");
    for (int i = 0; i < 10; ++i) m.launched("k", 2'000 + 10 * i, 200'000 + 10 * i, 5);
    const auto run = build(m.trace, {});
    ASSERT_TRUE(run.ok()) << run.error().what;
    EXPECT_EQ(run->notes.has("kernels-missing"), one_process);
  }
}

TEST(Completeness, ACaptureInsideARunLosesNothing) {
  TraceMaker m;
  add_launches(m, 100, 100);
  m.call("cudaStreamBeginCapture", 2'000, 2, 9'000);
  for (int i = 0; i < 50; ++i) m.call("cudaLaunchKernel", 2'010 + 10 * i, 2, 10'000 + i);
  m.call("cudaStreamEndCapture", 3'000, 2, 9'001);
  m.call("cudaLaunchKernel", 3'100, 2, 9'002);
  m.kernel("k", 200'000, 5, 9'002);
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok()) << run.error().what;
  EXPECT_FALSE(run->notes.has("kernels-missing"));
  EXPECT_EQ(run->launches_without_activity, 50);
}

TEST(Completeness, LaunchesThatTheRecordingEndedOnAreNotLost) {
  TraceMaker m;
  add_launches(m, 200, 198);
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->notes.has("kernels-missing"));
}

TEST(Completeness, OneLostKernelInTheMiddleIsSaid) {
  TraceMaker m;
  add_launches(m, 200, 200);
  m.trace.device.correlation[100] = store::kNoId;  // its launch finds no kernel
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok());
  ASSERT_NE(run->notes.find("kernels-missing"), nullptr);
  EXPECT_EQ(run->notes.find("kernels-missing")->count, 1);
  EXPECT_EQ(run->notes.find("launches-missing")->count, 1);
}

TEST(Completeness, KernelsLaunchedBeforeTheRecordingAreNoLoss) {
  for (const bool in_front : {true, false}) {
    TraceMaker m;
    m.kernel("old", in_front ? 50'000 : 100'105, 3, 9'000);
    add_launches(m, 50, 50);
    const auto run = build(m.trace, {});
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->notes.find("launches-missing")->severity,
              in_front ? store::Severity::kInfo : store::Severity::kDataLoss);
  }
}

TEST(Completeness, GraphLaunchesWithoutKernelsAreGraphTime) {
  TraceMaker m;
  for (int s = 0; s < 5; ++s) {
    m.mark(fmt::format("ProfilerStep#{}", s), 1'000 * s, 900);
    m.call("cudaGraphLaunch", 1'000 * s + 10, 2, ++m.last_correlation);
    m.launched("argmax", 1'000 * s + 20, 1'000 * s + 700, 10);
  }
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok());
  ASSERT_NE(run->notes.find("graph-level-rows"), nullptr);
  EXPECT_EQ(run->notes.find("graph-level-rows")->count, 5);
  EXPECT_EQ(run->graphs_without_kernels.size(), 5U);
}

TEST(Completeness, WhatWasNotRecordedIsSaid) {
  TraceMaker bare;
  bare.launched("k", 1, 10, 5);
  const auto run = build(bare.trace, {});
  ASSERT_TRUE(run.ok());
  for (const char* code : {"ops-missing", "no-shapes", "no-stacks"})
    EXPECT_TRUE(run->notes.has(code)) << code;

  TraceMaker full;
  full.frame("a.py(1): f", 0, 90);
  full.op("aten::to", 5, 50, 1, "[[8,4]]");
  full.launched("k", 10, 100, 5);
  const auto all = build(full.trace, {});
  ASSERT_TRUE(all.ok());
  for (const char* code : {"ops-missing", "no-shapes", "no-stacks", "kernels-missing",
                           "launches-missing", "clock-skew", "other-devices", "unknown-device"})
    EXPECT_FALSE(all->notes.has(code)) << code;
}

TEST(Completeness, TheDeviceIsKnownByNameOrFlag) {
  TraceMaker m;
  m.trace.info.devices[0].name = "NVIDIA Imaginary 9000";
  m.trace.info.devices[0].sms = 7;
  m.launched("k", 1, 10, 5);
  const auto unknown = build(m.trace, {});
  ASSERT_TRUE(unknown.ok());
  EXPECT_FALSE(unknown->gpu);
  EXPECT_TRUE(unknown->notes.has("unknown-device"));
  const auto named = build(m.trace, {.gpu = "H200"});
  ASSERT_TRUE(named.ok()) << named.error().what;
  EXPECT_TRUE(named->gpu);
  EXPECT_FALSE(named->notes.has("unknown-device"));
  const auto wrong = build(m.trace, {.gpu = "no such gpu"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Error::Code::kUsage);
}

TEST(Completeness, TheBusiestDeviceIsTakenAndTheOthersAreSaid) {
  TraceMaker m;
  m.launched("k", 1, 10, 5);
  m.device_id = 3;
  m.stream = m.thread("3", "7");
  m.launched("k", 2, 10, 500);
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->device, 3);
  EXPECT_EQ(run->activities.size(), 1U);
  ASSERT_NE(run->notes.find("other-devices"), nullptr);
  EXPECT_EQ(run->notes.find("other-devices")->count, 1);
  EXPECT_EQ(run->launches_without_activity, 0);
}

}  // namespace
}  // namespace culprit::run
