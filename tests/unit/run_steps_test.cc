#include <gtest/gtest.h>

#include <fmt/format.h>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::kUs;
using testing::TraceMaker;

auto built(const TraceMaker& maker, const Options& options = {}) {
  auto run = build(maker.trace, options);
  EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().what);
  return run.ok() ? std::move(*run) : culprit::run::Run{};
}

// One decode step of a small model, eager or as one graph replay: its launches from `host` on, 1 us
// apart, its kernels from `device` on, 10 us each and back to back. Returns where its kernels end.
struct Decode {
  int layers = 12;
  bool graph = false;
  int skipped_kernels = 0;  // of the last layers: launched, and not in the file
  int per_kernel = 10;
};

Nanos add_step(TraceMaker& m, Nanos host, Nanos device, const Decode& model = {}) {
  std::vector<std::string> kernels{"embedding"};
  for (int layer = 0; layer < model.layers; ++layer)
    for (const char* name : {"rms_norm", "qkv gemm", "paged_attention", "o gemm", "rms_norm",
                             "gate_up gemm", "silu_and_mul", "down gemm"})
      kernels.emplace_back(name);
  for (const char* name : {"final norm", "lm_head gemm", "argmax"}) kernels.emplace_back(name);
  const std::size_t recorded = kernels.size() - static_cast<std::size_t>(model.skipped_kernels);
  if (model.graph) m.call("cudaGraphLaunch", host, 5, ++m.last_correlation);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!model.graph) m.call("cudaLaunchKernel", host++, 1, ++m.last_correlation);
    if (i < recorded) m.kernel(kernels[i], device, model.per_kernel, m.last_correlation);
    device += model.per_kernel;
  }
  return device;
}

std::vector<std::pair<Nanos, Nanos>> bounds_us(const Run& run) {
  std::vector<std::pair<Nanos, Nanos>> bounds;
  for (const Step& s : run.steps) bounds.emplace_back(s.begin / kUs, s.end / kUs);
  return bounds;
}

std::int64_t used(const Run& run) {
  return std::count_if(run.steps.begin(), run.steps.end(), [](const Step& s) { return s.used; });
}

// With overlap scheduling the host marks step n + 1 while the device still runs step n.
TEST(Steps, AreBoundedByWhatTheirMarkLaunchedNotByItsTime) {
  TraceMaker m;
  for (int s = 0; s < 4; ++s) {
    m.mark("step[DECODE bs=8]", 200 * s, 190);
    add_step(m, 200 * s + 10, 1'000 + 1'200 * s);
  }
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kMarked);
  EXPECT_EQ(run.kind, StepKind::kDecode);
  EXPECT_EQ(bounds_us(run), (std::vector<std::pair<Nanos, Nanos>>{
                                {1'000, 2'200}, {2'200, 3'400}, {3'400, 4'600}, {4'600, 5'600}}));
  EXPECT_EQ(used(run), 4);
  EXPECT_EQ(run.steps[0].batch, 8);
  EXPECT_EQ(run.steps[0].mark, "step[DECODE bs=8]");
  EXPECT_EQ(run.steps[2].first, 200);
  EXPECT_EQ(run.steps[2].last, 300);
  EXPECT_EQ(run.activities[250].step, 2);
}

TEST(Steps, TheLastEndsWithItsMarkWhereThatIsLater) {
  TraceMaker m;
  m.mark("ProfilerStep#1", 0, 5'000);
  add_step(m, 10, 1'000);
  EXPECT_EQ(bounds_us(built(m)), (std::vector<std::pair<Nanos, Nanos>>{{1'000, 5'000}}));
}

// TraceLens#723: 18 decode and 4 prefill steps; b: a mark of vLLM's form inside each.
class MarkedSteps : public ::testing::TestWithParam<bool> {};

TEST_P(MarkedSteps, CountNestedMarksOnce) {
  TraceMaker m;
  for (int s = 0; s < 22; ++s) {
    const bool prefill = s % 6 == 2;
    m.mark(prefill ? "step[EXTEND bs=1 toks=300]" : "step[DECODE bs=16]", 2'000 * s, 1'900);
    if (GetParam())
      m.mark(prefill ? "execute_context_1(300)_generation_0(0)"
                     : "execute_context_0(0)_generation_16(16)",
             2'000 * s + 5, 1'800);
    add_step(m, 2'000 * s + 10, 2'000 * s + 500);
  }
  const auto run = built(m);
  ASSERT_EQ(run.steps.size(), 22U);
  EXPECT_EQ(run.kind, StepKind::kDecode);
  EXPECT_EQ(used(run), 18);
  EXPECT_EQ(run.steps[2].kind, StepKind::kPrefill);
  EXPECT_EQ(run.steps[2].tokens, 300);
  EXPECT_EQ(run.steps[2].why_excluded, "other-kind");
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutInnerMarks, MarkedSteps, ::testing::Bool());

TEST(Steps, AnOuterMarkWithoutAKindTakesThatOfTheInnerOne) {
  TraceMaker m;
  m.mark("ProfilerStep#3", 0, 2'000);
  m.mark("step[DECODE bs=4]", 5, 1'900);
  add_step(m, 10, 500);
  const auto run = built(m);
  EXPECT_EQ(run.steps[0].kind, StepKind::kDecode);
  EXPECT_EQ(run.steps[0].batch, 4);
  EXPECT_EQ(run.steps[0].mark, "ProfilerStep#3");
}

TEST(Steps, AProfilerRangeAroundManyStepsIsNoStep) {
  TraceMaker m;
  m.mark("ProfilerStep#0", 0, 20'000);
  for (int s = 0; s < 5; ++s) {
    m.mark("step[DECODE bs=4]", 2'000 * s, 1'900);
    add_step(m, 2'000 * s + 10, 2'000 * s + 500);
  }
  EXPECT_EQ(built(m).steps.size(), 5U);
}

TEST(Steps, ARoundOfSpeculativeDecodingIsOneDecodeStep) {
  TraceMaker m;
  for (int s = 0; s < 5; ++s) {
    const Nanos at = 5'000 * s;
    m.mark("scheduler.run_batch", at, 4'900);
    m.mark("step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]", at + 1, 900);
    add_step(m, at + 10, at + 500, {.layers = 1});
    m.mark("step[TARGET_VERIFY bs=3]", at + 1'000, 2'000);
    add_step(m, at + 1'010, at + 1'200);
  }
  const auto run = built(m);
  ASSERT_EQ(run.steps.size(), 5U);
  EXPECT_EQ(run.kind, StepKind::kDecode);
  EXPECT_EQ(run.steps[0].batch, 3);
}

TEST(Steps, AMarkUnderWhichNothingWasLaunchedMakesNoStep) {
  TraceMaker m;
  m.mark("ProfilerStep#1", 0, 1'900);
  add_step(m, 10, 500);
  m.mark("ProfilerStep#2", 2'000, 100);
  EXPECT_EQ(built(m).steps.size(), 1U);
}

TEST(Steps, TheBackwardThreadLaunchesOnBehalfOfTheMarkedOne) {
  TraceMaker m;
  m.mark("ProfilerStep#1", 0, 1'000);
  m.op("autograd::engine::evaluate_function: MmBackward0", 5, 10);
  m.host = m.thread("4001", "4002");
  add_step(m, 10, 500);
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kMarked);
  EXPECT_EQ(run.kind, StepKind::kTraining);
}

TEST(Steps, DeviceMarksServeWhereTheHostHasNone) {
  TraceMaker m;
  for (int s = 0; s < 3; ++s) {
    const Nanos end = add_step(m, 2'000 * s + 10, 2'000 * s + 500);
    m.device_mark("step[DECODE bs=2]", 2'000 * s + 500, end - (2'000 * s + 500));
  }
  const auto main_stream = m.stream;
  m.stream = m.thread("0", "20");  // the same mark is drawn again on another stream
  m.kernel("side", 600, 10, 1);
  m.device_mark("step[DECODE bs=2]", 550, 900);
  m.stream = main_stream;
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kMarked);
  EXPECT_EQ(bounds_us(run),
            (std::vector<std::pair<Nanos, Nanos>>{{500, 2'500}, {2'500, 4'500}, {4'500, 5'500}}));
  EXPECT_EQ(run.steps[2].end, 5'500 * kUs);  // without the nanoseconds a mark is drawn wider
}

// TraceLens#723 c: no marks at all, 18 equal replays.
TEST(Steps, EqualGraphReplaysAreSteps) {
  TraceMaker m;
  for (int s = 0; s < 18; ++s) {
    add_step(m, 2'000 * s + 10, 2'000 * s + 500, {.graph = true});
    m.launched("sampling", 2'000 * s + 20, 2'000 * s + 1'600, 20);
  }
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kGraphReplay);
  EXPECT_EQ(run.steps.size(), 18U);
  EXPECT_EQ(run.kind, StepKind::kDecode);
  EXPECT_EQ(run.layers.count, 12);
  EXPECT_FALSE(run.notes.has("no-steps"));
}

TEST(Steps, ReplaysOfTwoBatchSizesAreSteps) {
  TraceMaker m;
  for (int s = 0; s < 10; ++s)
    add_step(m, 4'000 * s + 10, 4'000 * s + 500, {.graph = true, .per_kernel = s < 5 ? 10 : 25});
  EXPECT_EQ(built(m).steps.size(), 10U);
}

TEST(Steps, ADraftModelsReplaysAreNoSteps) {
  TraceMaker m;
  for (int s = 0; s < 6; ++s) {
    add_step(m, 4'000 * s + 10, 4'000 * s + 500, {.layers = 24, .graph = true});
    for (int d = 0; d < 3; ++d)
      add_step(m, 4'000 * s + 20 + d, 4'000 * s + 2'600 + 100 * d,
               {.layers = 4, .graph = true, .per_kernel = 1});
  }
  EXPECT_EQ(built(m).steps.size(), 6U);
}

// Piecewise graphs: a replay per layer with attention between them.
TEST(Steps, PiecesOfAStepAreFoundByTheirRepetition) {
  TraceMaker m;
  Nanos at = 0;
  const auto replay = [&](std::initializer_list<const char*> kernels) {
    m.call("cudaGraphLaunch", at, 2, ++m.last_correlation);
    for (const char* k : kernels) m.kernel(k, at += 10, 9, m.last_correlation);
  };
  for (int s = 0; s < 6; ++s) {
    replay({"embedding", "norm", "qkv gemm"});
    for (int layer = 0; layer < 15; ++layer) {
      m.launched("paged_attention", at + 5, at + 10, 9);
      at += 10;
      replay({"o gemm", "norm", "down gemm", "qkv gemm"});
    }
    m.launched("paged_attention", at + 5, at + 10, 9);
    at += 10;
    replay({"o gemm", "norm", "lm_head"});
    m.launched("argmax", at + 5, at + 10, 9);
    at += 500;
  }
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kRepetition);
  EXPECT_EQ(run.steps.size(), 6U);
  EXPECT_EQ(m.trace.strings[run.groups[run.activities[static_cast<std::size_t>(run.steps[1].first)]
                                           .group.index]
                                .name],
            "embedding");
}

TEST(Steps, EagerStepsWithoutMarksAreFoundByRepetition) {
  TraceMaker m;
  for (int s = 0; s < 7; ++s) add_step(m, 2'000 * s + 10, 2'000 * s + 500);
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kRepetition);
  EXPECT_EQ(run.steps.size(), 7U);
  EXPECT_EQ(run.steps[3].begin, 6'500 * kUs);
  EXPECT_EQ(run.layers.count, 12);
}

// A prefill after every fifth decode step: the decode steps are the period, not the prefills.
TEST(Steps, RegularPrefillsAreNotThePeriod) {
  for (const bool graph : {false, true}) {
    TraceMaker m;
    Nanos device = 500;
    for (int s = 0; s < 24; ++s) {
      const bool prefill = s % 6 == 5;
      device = add_step(m, 1'000 * s, device,
                        {.graph = graph && !prefill, .per_kernel = prefill ? 300 : 10}) +
               50;
    }
    const auto run = built(m);
    EXPECT_EQ(run.how, graph ? StepsHow::kGraphReplay : StepsHow::kRepetition);
    EXPECT_EQ(run.steps.size(), graph ? 20U : 24U);
    EXPECT_EQ(used(run), graph ? 16 : 20);
  }
}

TEST(Steps, TheLayersOfOneStepAreNoSteps) {
  TraceMaker m;
  add_step(m, 10, 500, {.layers = 40});
  const auto run = built(m);
  EXPECT_EQ(run.how, StepsHow::kWholeTrace);
  EXPECT_TRUE(run.notes.has("no-steps"));
  EXPECT_EQ(bounds_us(run), (std::vector<std::pair<Nanos, Nanos>>{{500, 3'740}}));
}

TEST(Steps, MarksThatNobodyKnowsAreNamed) {
  TraceMaker m;
  m.mark("nccl:all_reduce", 0, 5);
  m.mark("my_engine.tick", 0, 2'000);
  add_step(m, 10, 500);
  const auto run = built(m);
  const store::Note* note = run.notes.find("unknown-marks");
  ASSERT_NE(note, nullptr);
  EXPECT_NE(note->message.find("my_engine.tick"), std::string::npos);
  EXPECT_EQ(note->message.find("nccl"), std::string::npos);
}

TEST(Steps, FramesTellThePhaseThatProfilerStepDoesNot) {
  TraceMaker m;
  for (int s = 0; s < 4; ++s) {
    m.mark(fmt::format("ProfilerStep#{}", s), 2'000 * s, 1'900);
    m.frame(s == 1 ? "backend.py(1): forward_extend" : "backend.py(9): forward_decode",
            2'000 * s + 5, 1'000);
    m.launched("k", 2'000 * s + 10, 2'000 * s + 500, 10);
  }
  const auto run = built(m);
  EXPECT_EQ(run.kind, StepKind::kDecode);
  EXPECT_EQ(used(run), 3);
  EXPECT_EQ(run.steps[1].kind, StepKind::kPrefill);
}

// ---- which steps count

TraceMaker ten_steps(int odd, const Decode& odd_model, Nanos odd_extra = 0) {
  TraceMaker m;
  Nanos device = 500;
  for (int s = 0; s < 10; ++s) {
    m.mark("step[DECODE bs=8]", 1'200 * s, 1'000);
    const Nanos end = add_step(m, 1'200 * s + 10, device, s == odd ? odd_model : Decode{});
    device = end + 200 + (s % 3) * 10 + (s == odd ? odd_extra : 0);
  }
  return m;
}

TEST(UsedSteps, AStallIsAnOutlier) {
  const auto m = ten_steps(4, {}, 20'000);
  const auto run = built(m);
  EXPECT_EQ(used(run), 9);
  EXPECT_EQ(run.steps[4].why_excluded, "outlier");
  ASSERT_NE(run.notes.find("outlier-step"), nullptr);
  EXPECT_EQ(run.notes.find("outlier-step")->where, "steps 4");
}

TEST(UsedSteps, SmallDifferencesAreNoOutliers) {
  const auto m = ten_steps(4, {}, 300);
  EXPECT_EQ(used(built(m)), 10);
}

TEST(UsedSteps, ASecondRegimeIsNoOutlier) {
  TraceMaker m;
  Nanos device = 500;
  for (int s = 0; s < 10; ++s) {
    m.mark("step[DECODE bs=8]", 2'000 * s, 1'900);
    device = add_step(m, 2'000 * s + 10, device) + (s < 4 ? 5'000 : 200);
  }
  EXPECT_EQ(used(built(m)), 10);
}

TEST(UsedSteps, PartialFirstAndLastStepsAreLeftOut) {
  for (const int odd : {0, 9}) {
    const auto m = ten_steps(odd, {.layers = 5});
    const auto run = built(m);
    EXPECT_EQ(used(run), 9);
    EXPECT_EQ(run.steps[static_cast<std::size_t>(odd)].why_excluded, "partial");
    EXPECT_EQ(run.notes.find("partial-step")->count, 1);
    EXPECT_EQ(run.layers.count, 12);
  }
}

TEST(UsedSteps, LostKernelsMakeAStepIncomplete) {
  const auto m = ten_steps(4, {.skipped_kernels = 3});
  const auto run = built(m);
  EXPECT_EQ(used(run), 9);
  EXPECT_EQ(run.steps[4].why_excluded, "incomplete");
  EXPECT_EQ(run.launches_without_activity, 3);
  const store::Note* note = run.notes.find("kernels-missing");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 3);
  EXPECT_EQ(note->where, "steps 4");
  EXPECT_EQ(note->severity, store::Severity::kDataLoss);
}

TEST(UsedSteps, WhereAllLackSomethingAllCount) {
  TraceMaker m;
  for (int s = 0; s < 5; ++s) {
    m.mark("step[DECODE bs=8]", 2'000 * s, 1'900);
    add_step(m, 2'000 * s + 10, 2'000 * s + 500, {.skipped_kernels = 2});
  }
  const auto run = built(m);
  EXPECT_EQ(used(run), 5);
  EXPECT_EQ(run.notes.find("kernels-missing")->where, "steps 0-4");
}

TEST(UsedSteps, BatchSizesAreComparedAmongThemselves) {
  TraceMaker m;
  for (int s = 0; s < 12; ++s) {
    const bool large = s >= 6;
    m.mark(large ? "step[DECODE bs=30]" : "step[DECODE bs=24]", 9'000 * s, 8'900);
    add_step(m, 9'000 * s + 10, 9'000 * s + 500,
             {.layers = large ? 24 : 12, .per_kernel = large ? 40 : 10});
  }
  EXPECT_EQ(used(built(m)), 12);
}

TEST(UsedSteps, AreThoseTheUserNames) {
  const auto m = ten_steps(4, {}, 20'000);
  const auto run = built(m, {.steps = std::pair{3, 4}});
  EXPECT_EQ(used(run), 2);
  EXPECT_TRUE(run.steps[4].used);
  EXPECT_EQ(run.steps[5].why_excluded, "not-selected");
  for (const auto& wrong : {std::pair<std::int64_t, std::int64_t>{5, 3}, {-1, 2}, {0, 10}}) {
    const auto refused = build(m.trace, {.steps = wrong});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Error::Code::kUsage);
    EXPECT_NE(refused.error().hint.find("0..9"), std::string::npos);
  }
}

TEST(UsedSteps, FewOfThemAreSaidToBeFew) {
  TraceMaker m;
  m.mark("step[DECODE bs=8]", 0, 1'900);
  add_step(m, 10, 500);
  EXPECT_TRUE(built(m).notes.has("too-few-steps"));
  EXPECT_FALSE(built(ten_steps(0, {})).notes.has("too-few-steps"));
}

}  // namespace
}  // namespace culprit::run
