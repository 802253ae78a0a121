#include <gtest/gtest.h>

#include <chrono>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::kUs;
using testing::TraceMaker;

Run built(const TraceMaker& maker, const Options& options = {}) {
  auto run = build(maker.trace, options);
  EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().what);
  return run.ok() ? std::move(*run) : Run{};
}

const store::Note& note(const Run& run, std::string_view code) {
  static const store::Note none;
  const store::Note* found = run.notes.find(code);
  EXPECT_NE(found, nullptr) << code;
  return found != nullptr ? *found : none;
}

TEST(Links, ActivitiesAreInTimeOrderTiesInTraceOrder) {
  TraceMaker m;
  m.launched("c", 1, 30, 5);
  m.launched("a", 2, 10, 5);
  m.launched("b1", 3, 20, 0);
  m.launched("b2", 4, 20, 5);
  const auto run = built(m);
  std::vector<std::string_view> names;
  for (const Activity& a : run.activities)
    names.push_back(m.trace.strings[run.groups[a.group.index].name]);
  EXPECT_EQ(names, (std::vector<std::string_view>{"a", "b1", "b2", "c"}));
  EXPECT_EQ(run.device_span, (store::Span{10 * kUs, 35 * kUs}));
}

TEST(Links, GroupsAreNameGridAndBlock) {
  TraceMaker m;
  m.launched("k", 1, 10, 5, {8, 1, 1});
  m.launched("k", 2, 20, 5, {9, 1, 1});
  m.launched("k", 3, 30, 5, {8, 1, 1});
  const auto run = built(m);
  ASSERT_EQ(run.groups.size(), 2U);
  EXPECT_EQ(run.groups[0].activities, 2);
  EXPECT_EQ(run.groups[1].activities, 1);
  EXPECT_EQ(run.groups[1].first, ActivityId{1});
}

TEST(Links, GroupsStayApartBeyondTheTablesFirstSize) {
  TraceMaker m;
  for (int i = 0; i < 500; ++i) m.launched("k", 10 * i, 10 * i + 5, 2, {i % 250 + 1, 1, 1});
  const auto run = built(m);
  ASSERT_EQ(run.groups.size(), 250U);
  for (const Group& g : run.groups) EXPECT_EQ(g.activities, 2);
}

TEST(Links, AGraphLaunchOwnsManyKernelsAndNoOperator) {
  TraceMaker m;
  m.op("aten::add", 0, 100, 5);
  m.call("cudaGraphLaunch", 10, 5, 77, 5);
  for (int i = 0; i < 5; ++i) m.kernel("k", 200 + 10 * i, 5, 77);
  const auto run = built(m);
  for (const Activity& a : run.activities) {
    EXPECT_TRUE(a.in_graph);
    EXPECT_EQ(a.call, store::CallRow{0});
    EXPECT_FALSE(a.op.valid());
  }
  EXPECT_EQ(run.call_op[0], store::OpRow{0});
}

TEST(Links, DriverLaunchesCount) {
  TraceMaker m;
  m.call("cuLaunchKernelEx", 1, 2, 9);
  m.kernel("triton_poi_fused_0", 10, 5, 9);
  const auto run = built(m);
  EXPECT_TRUE(run.activities[0].call.valid());
  EXPECT_EQ(run.kernels_without_launch, 0);
}

TEST(Links, InnermostOperatorByTimeOnTheLaunchThread) {
  TraceMaker m;
  m.op("aten::to", 0, 100);
  m.op("aten::copy_", 10, 50);
  const auto main_thread = m.host;
  m.host = m.thread("4001", "9");
  m.op("other", 0, 200);
  m.host = main_thread;
  m.launched("inside", 20, 200, 5);
  m.launched("after", 70, 210, 5);
  m.launched("outside", 150, 220, 5);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].op, store::OpRow{1});
  EXPECT_EQ(run.activities[1].op, store::OpRow{0});
  EXPECT_FALSE(run.activities[2].op.valid());
  EXPECT_EQ(run.op_parent[1], store::OpRow{0});
  EXPECT_FALSE(run.op_parent[2].valid());
}

TEST(Links, RowsOutOfOrderNestTheSame) {
  TraceMaker m;
  m.op("inner", 10, 20);
  m.op("late", 60, 5);
  m.op("outer", 10, 50);
  m.launched("k", 15, 200, 5);
  const auto run = built(m);
  EXPECT_EQ(run.op_parent[0], store::OpRow{2});
  EXPECT_FALSE(run.op_parent[1].valid());
  EXPECT_EQ(run.activities[0].op, store::OpRow{0});
}

TEST(Links, ExternalIdFindsAnOperatorOnAnotherThread) {
  TraceMaker m;
  const auto main_thread = m.host;
  m.host = m.thread("4001", "9");
  m.op("aten::mm", 0, 50, 31);
  m.host = main_thread;
  m.call("cudaLaunchKernel", 20, 2, 1, 31);
  m.kernel("k", 60, 5, 1);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].op, store::OpRow{0});
  EXPECT_EQ(note(run, "ops-on-another-thread").count, 1);
}

// In traces of 2022 to 2024 the External id of a call is its correlation, and may by chance be the
// id of an operator that has nothing to do with it.
TEST(Links, AnExternalIdOfAnotherSpaceDoesNotBeatTheOperatorAroundTheLaunch) {
  TraceMaker m;
  m.op("unrelated", 0, 5, 7);
  m.op("around", 100, 50, 8);
  m.call("cudaLaunchKernel", 120, 2, 7, 7);
  m.kernel("k", 200, 5, 7);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].op, store::OpRow{1});
}

TEST(Links, ExternalIdTellsNeighboursApartThatRoundToOneMicrosecond) {
  TraceMaker m;
  m.op("first", 100, 20, 7);  // really ends within the microsecond in which "second" begins
  m.op("second", 120, 20, 8);
  m.call("cudaLaunchKernel", 120, 2, 1, 7);
  m.kernel("k", 200, 5, 1);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].op, store::OpRow{0});
}

TEST(Links, AKernelWithoutALaunchIsCountedAndStillFindsItsOperatorById) {
  TraceMaker m;
  m.op("aten::mm", 0, 50, 31);
  m.kernel("k", 60, 5, 101);
  m.trace.device.external.back() = 31;
  m.kernel("lost", 80, 5, 102);
  m.launched("k", 70, 90, 5);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].op, store::OpRow{0});
  EXPECT_EQ(run.kernels_without_launch, 2);
  EXPECT_EQ(note(run, "launches-missing").count, 2);
}

// Kernels of kineto#1380: 9 us each, 2.3 us before their launch.
TEST(Links, KernelsBeforeTheirLaunchAreLinkedAndSaidToBeSkewed) {
  TraceMaker m;
  for (int i = 0; i < 40; ++i) {
    m.call("cudaLaunchKernel", 100 * i + 50, 7, i + 1);
    m.kernel_ns("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", (100 * i + 50) * kUs - 2'300, 9 * kUs,
                i + 1);
  }
  const auto run = built(m);
  for (const Activity& a : run.activities) EXPECT_TRUE(a.call.valid());
  EXPECT_EQ(note(run, "clock-skew").count, 40);
  EXPECT_NE(note(run, "clock-skew").message.find("2.3 us"), std::string::npos);
  EXPECT_EQ(run.device_span.length(), 3'909 * kUs);
}

// TraceLens#581: each rank counts its correlations from 1.
TEST(Links, RanksOfAMergedFileStayApart) {
  TraceMaker m;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string label = rank == 0 ? "[TP00]" : "[TP01]";
    m.host = m.thread(label + " 4001", "4001", label);
    m.stream = m.thread(label + " 0", "7", label);
    for (int i = 0; i < 500; ++i) {
      m.call("cudaLaunchKernel", 40 * i, 2, i + 1);
      m.kernel("k", 40 * i + 5, rank == 0 ? 10 : 30, i + 1);
    }
  }
  const std::vector<Device> devices = Builder(m.trace).devices();
  ASSERT_EQ(devices.size(), 2U);
  for (std::size_t d = 0; d < 2; ++d) {  // the busier one, rank 1, first
    const auto run = built(m, {.device = d});
    EXPECT_EQ(m.trace.strings[run.rank], d == 0 ? "[TP01]" : "[TP00]");
    ASSERT_EQ(run.activities.size(), 500U);
    Nanos time = 0;
    for (const Activity& a : run.activities) {
      time += a.end - a.begin;
      EXPECT_EQ(m.trace.threads[m.trace.calls.thread[a.call.index].index].rank, run.rank);
    }
    EXPECT_EQ(time, (d == 0 ? 15'000 : 5'000) * kUs);
    EXPECT_TRUE(run.notes.has("other-devices"));
  }
  const auto none = build(m.trace, {.device = 2});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Error::Code::kUsage);
}

// Two ranks without a label; each has a host process and a device row of its own, ids collide.
struct TwoProcesses {
  TraceMaker m;
  store::ThreadId hosts[2], rows[2];
  TwoProcesses() {
    for (int p = 0; p < 2; ++p) {
      hosts[p] = m.thread(p == 0 ? "4001" : "4002", "1");
      rows[p] = m.thread(p == 0 ? "0" : "1", "7");
    }
  }
  void launched(int process, std::int64_t id, Nanos launch, Nanos begin, Nanos dur = 5) {
    at(process);
    m.call("cudaLaunchKernel", launch, 2, id);
    m.kernel("k", begin, dur, id);
  }
  void at(int process) {
    m.host = hosts[process];
    m.stream = rows[process];
    m.device_id = process;
  }
};

TEST(Links, AProcessNeverGetsTheKernelsOfAnother) {
  TwoProcesses two;
  for (int i = 0; i < 200; ++i) {
    two.launched(0, i + 1, 50 * i, 50 * i + 5);
    two.launched(1, i + 51, 50 * i + 21, 50 * i + 26);
  }
  const Builder builder(two.m.trace);
  ASSERT_EQ(builder.devices().size(), 2U);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto run = builder.build({.device = d});
    ASSERT_TRUE(run.ok());
    ASSERT_EQ(run->activities.size(), 200U);
    EXPECT_EQ(two.m.trace.strings[run->process], run->device == 0 ? "4001" : "4002");
    for (const Activity& a : run->activities) {
      ASSERT_TRUE(a.call.valid());
      EXPECT_EQ(two.m.trace.calls.thread[a.call.index], two.hosts[run->device]);
      EXPECT_EQ(a.begin - two.m.trace.calls.begin[a.call.index], 5 * kUs);
    }
    EXPECT_FALSE(run->notes.has("id-collision"));
  }
}

// The launch of one kernel is not in the file; the other process has a launch of that id.
TEST(Links, AKernelWithoutItsLaunchIsNotGivenToTheOtherProcess) {
  TwoProcesses two;
  two.at(1);
  for (int i = 0; i < 5; ++i) two.m.kernel("before the recording", 2 * i, 1, i + 1);
  for (int i = 0; i < 100; ++i) {
    two.launched(0, i + 1, 50 * i, 50 * i + 5);
    two.launched(1, i + 501, 50 * i + 20, 50 * i + 26);
  }
  const Builder builder(two.m.trace);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto run = builder.build({.device = d});
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->kernels_without_launch, run->device == 1 ? 5 : 0);
    EXPECT_FALSE(run->notes.has("kernels-missing"));
  }
}

// Equal ids throughout: time tells, as nothing runs before its launch, and a launch has one kernel.
TEST(Links, TimeTellsProcessesApartWhereIdsDoNot) {
  TwoProcesses two;
  for (int i = 0; i < 100; ++i) {
    two.launched(0, i + 1, 50 * i, 50 * i + 5);
    two.launched(1, i + 1, 100'000 + 50 * i, 100'000 + 50 * i + 5);
  }
  const Builder builder(two.m.trace);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto run = builder.build({.device = d});
    ASSERT_TRUE(run.ok());
    for (const Activity& a : run->activities) {
      ASSERT_TRUE(a.call.valid());
      EXPECT_EQ(two.m.trace.calls.thread[a.call.index], two.hosts[run->device]);
    }
  }
}

// Ranks in lockstep: each launch may by id and by time be of either. None is linked.
TEST(Links, WhatNothingTellsApartIsLinkedToNone) {
  TwoProcesses two;
  for (int i = 0; i < 100; ++i) {
    two.launched(0, i + 1, 50 * i, 50 * i + 5);
    two.launched(1, i + 1, 50 * i + 1, 50 * i + 6);
  }
  const Builder builder(two.m.trace);
  ASSERT_EQ(builder.devices().size(), 2U);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto run = builder.build({.device = d});
    ASSERT_TRUE(run.ok());
    for (const Activity& a : run->activities) EXPECT_FALSE(a.call.valid());
    EXPECT_EQ(note(*run, "id-collision").count, 100);
    EXPECT_FALSE(run->notes.has("launches-missing"));
    EXPECT_FALSE(run->notes.has("kernels-missing"));
  }
}

TEST(Links, TwoHundredThousandCollidingEventsTakeLinearTime) {
  TwoProcesses two;
  for (int i = 0; i < 50'000; ++i) {
    two.launched(0, i + 1, 50 * i, 50 * i + 5);
    two.launched(1, i + 1'001, 50 * i + 20, 50 * i + 26);
  }
  const auto begin = std::chrono::steady_clock::now();
  const Builder builder(two.m.trace);
  for (std::size_t d = 0; d < 2; ++d) {
    const auto run = builder.build({.device = d});
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->kernels_without_launch, 0);
  }
  // A pair of loops over them would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Links, RanksThatNothingSeparatesAreRefused) {
  TraceMaker m;
  for (int rank = 0; rank < 2; ++rank)
    for (int i = 0; i < 50; ++i) {
      m.call("cudaLaunchKernel", 40 * i, 2, i + 1);
      m.kernel("k", 40 * i + 5, 10, i + 1);
    }
  const auto run = build(m.trace, {});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, Error::Code::kUnusable);
  EXPECT_EQ(run.error().note_code, "ranks-inseparable");
  EXPECT_EQ(run.error().where, "trace.json");
  EXPECT_FALSE(run.error().hint.empty());
}

TEST(Links, ALaunchOfSeveralKernelsThatIsNoGraphIsACollision) {
  TraceMaker m;
  for (int i = 0; i < 50; ++i) m.launched("k", 40 * i, 40 * i + 5, 10);
  for (int i = 0; i < 50; ++i) m.kernel("of another rank", 40 * i + 20, 10, i + 1);
  const auto run = build(m.trace, {});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().note_code, "ranks-inseparable");
}

TEST(Links, OneCollidingIdIsLeftUnlinked) {
  TraceMaker m;
  for (int i = 0; i < 100; ++i) m.launched("k", 40 * i, 40 * i + 5, 10);
  m.call("cudaLaunchKernel", 4'100, 2, 50);
  const auto run = built(m);
  EXPECT_EQ(note(run, "id-collision").count, 1);
  EXPECT_FALSE(run.activities[49].call.valid());
  EXPECT_TRUE(run.activities[48].call.valid());
}

TEST(Links, ARuntimeCallAroundItsDriverCallIsOneLaunch) {
  TraceMaker m;
  for (int i = 0; i < 10; ++i) {
    m.call("cudaLaunchKernel", 40 * i, 8, i + 1);
    m.call("cuLaunchKernel", 40 * i + 2, 4, i + 1);
    m.kernel("k", 40 * i + 10, 5, i + 1);
  }
  const auto run = built(m);
  EXPECT_FALSE(run.notes.has("id-collision"));
  EXPECT_EQ(run.activities[3].call, store::CallRow{6});
  EXPECT_FALSE(run.notes.has("kernels-missing"));
}

TEST(Links, ASynchronisingCallWithTheSameIdIsNoLaunch) {
  TraceMaker m;
  m.call("cudaStreamSynchronize", 0, 2, 1);
  m.call("cudaLaunchKernel", 5, 2, 1);
  m.kernel("k", 10, 5, 1);
  const auto run = built(m);
  EXPECT_EQ(run.activities[0].call, store::CallRow{1});
}

TEST(Links, TheSameRunForAnyNumberOfThreads) {
  TraceMaker m;
  for (int i = 0; i < 60'000; ++i) {
    m.frame("a.py(1): f", 100 * i, 90);
    m.frame("<built-in method to of Tensor object>", 100 * i + 5, 50, "a.py:3");
    m.op("aten::to", 100 * i + 10, 40);
    m.launched("k", 100 * i + 20, 100 * i + 60, 5);
  }
  const auto one = built(m, {.threads = 1});
  const auto two = built(m, {.threads = 2});
  EXPECT_EQ(one.op_parent, two.op_parent);
  EXPECT_EQ(one.frame_parent, two.frame_parent);
  EXPECT_EQ(one.call_frame, two.call_frame);
  EXPECT_EQ(one.call_op, two.call_op);
  EXPECT_EQ(one.call_frame[7], store::FrameRow{15});
}

}  // namespace
}  // namespace culprit::run
