#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "report/drawing.h"
#include "run_trace.h"

namespace culprit::report {
namespace {

using nlohmann::json;
using run::testing::TraceMaker;

// What the page would draw of a trace.
struct Drawn {
  run::Run run;
  evidence::Evidence evidence;
  verdict::Verdict verdict;
  Answer answer;
  Drawing drawing;
  json doc;

  explicit Drawn(const store::Trace& trace) {
    Result<run::Run> built = run::build(trace, {});
    EXPECT_TRUE(built.ok());
    run = *std::move(built);
    evidence = evidence::measure(run, {});
    verdict = verdict::judge(evidence);
    answer.path = "trace.json";
    answer.info = &trace.info;
    answer.run = &run;
    answer.evidence = &evidence;
    answer.verdict = &verdict;
    drawing = draw(answer, evidence.kernels.size());
    doc = json::parse(render_drawing(answer, drawing, evidence.kernels.size()));
  }
};

// Decode steps of the given lengths in us, each of ten kernels that are launched 30 us ahead, under an
// operator and a function around all of the step.
void add_steps(TraceMaker& m, const std::vector<Nanos>& lengths) {
  Nanos at = 1'000;
  for (const Nanos length : lengths) {
    m.mark("step[DECODE bs=1]", at - 40, length - 1);
    m.frame("model.py(7): forward", at - 38, length - 5);
    for (Nanos k = 0; k < 10; ++k) {
      const Nanos begin = at + k * length / 10;
      m.op("aten::mm", begin - 31, 4);
      m.launched(k % 2 == 0 ? "gemm" : "norm", begin - 30, begin, length / 20);
    }
    at += length;
  }
}

TEST(Drawing, IsOfTheUsedStepNearestToTheMedian) {
  TraceMaker m;
  add_steps(m, {1'000, 1'040, 1'000, 1'020, 1'020, 1'060, 1'000});
  const Drawn drawn(m.trace);
  const Nanos median = drawn.evidence.steps.median;
  const run::Step& step = drawn.run.steps[static_cast<std::size_t>(drawn.drawing.step)];
  for (const run::Step& other : drawn.run.steps) {
    if (!other.used) continue;
    EXPECT_LE(std::abs(step.length() - median), std::abs(other.length() - median));
  }
  EXPECT_EQ(drawn.doc["step"]["ns"], step.length());
  EXPECT_EQ(drawn.doc["steps"]["ns"].size(), 7u);
}

TEST(Drawing, LinksEachKernelToItsLaunch) {
  TraceMaker m;
  add_steps(m, {1'000, 1'000, 1'000, 1'000});
  const Drawn drawn(m.trace);
  ASSERT_EQ(drawn.drawing.streams.size(), 1u);
  ASSERT_EQ(drawn.drawing.threads.size(), 1u);
  const StreamLane& stream = drawn.drawing.streams[0];
  const ThreadLane& host = drawn.drawing.threads[0];
  EXPECT_EQ(host.launches, 10);
  std::size_t of_step = 0;
  for (std::size_t i = 0; i < stream.begin.size(); ++i) {
    if (stream.begin[i] < 0) continue;
    ++of_step;
    ASSERT_GE(stream.launch[i], 0);
    const auto call = static_cast<std::size_t>(stream.launch[i]);
    EXPECT_EQ(host.kind[call], HostKind::kCall);
    EXPECT_EQ(stream.begin[i] - host.begin[call], 30'000);
    const auto& figures = drawn.evidence.kernels[static_cast<std::size_t>(stream.kernel[i])];
    const auto& group = drawn.run.groups[figures.group.index];
    EXPECT_EQ(m.trace.strings[group.name], of_step % 2 == 1 ? "gemm" : "norm");
  }
  EXPECT_EQ(of_step, 10u);
  EXPECT_EQ(drawn.drawing.from, -30'000);
}

TEST(Drawing, BusyAndIdleTimeMakeUpTheStep) {
  TraceMaker m;
  add_steps(m, {1'000, 1'000, 1'000, 1'000});
  const Drawn drawn(m.trace);
  Nanos sum = 0;
  for (const DrawnGap& gap : drawn.drawing.gaps) sum += gap.length;
  const StreamLane& stream = drawn.drawing.streams[0];
  for (std::size_t i = 0; i < stream.begin.size(); ++i)
    if (stream.begin[i] >= 0) sum += stream.length[i];
  EXPECT_EQ(sum, drawn.doc["step"]["ns"].get<Nanos>());
}

TEST(Drawing, OfTooManyEventsTheLongestAreKeptAndTheOthersCounted) {
  TraceMaker m;
  add_steps(m, {100'000});
  std::vector<Nanos> lengths;
  constexpr std::size_t kMany = 2 * kMostEvents;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto length = static_cast<Nanos>(1 + i * 7'919 % 50'021);
    m.op("aten::add", static_cast<Nanos>(1'000 + i % 40'000), length);
    lengths.push_back(length * 1'000);
  }
  const Drawn drawn(m.trace);
  const ThreadLane& host = drawn.drawing.threads[0];
  std::vector<Nanos> kept;
  for (std::size_t i = 0; i < host.kind.size(); ++i)
    if (host.kind[i] == HostKind::kOp) kept.push_back(host.length[i]);
  std::size_t drawn_events = drawn.drawing.streams[0].begin.size() + host.begin.size();
  EXPECT_EQ(drawn_events, kMostEvents);
  const std::size_t left_out = std::accumulate(drawn.drawing.host_left_out.begin(),
                                               drawn.drawing.host_left_out.end(), std::size_t{0});
  EXPECT_EQ(kept.size() + drawn.drawing.host_left_out[static_cast<std::size_t>(HostKind::kOp)],
            kMany + 10);
  EXPECT_GE(left_out, kMany - kMostEvents);
  // The slow way: sort them. A bucket of lengths is an eighth of a power of two wide.
  std::sort(lengths.rbegin(), lengths.rend());
  std::sort(kept.rbegin(), kept.rend());
  EXPECT_GE(kept.back(), lengths[kept.size() - 1] * 7 / 8);
  const std::size_t sure = kept.size() / 2;
  EXPECT_TRUE(
      std::equal(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(sure), lengths.begin()));
}

TEST(Drawing, TakesTimesThatNoRunCanHave) {
  TraceMaker m;
  add_steps(m, {1'000, 1'000, 1'000});
  constexpr Nanos kFar = (Nanos{1} << 61) / 1'000;
  m.frame("since ever", -kFar, kFar + 2'500);
  m.frame("for ever", 1'500, kFar);
  m.call("cudaLaunchKernel", -kFar, 2, 99);
  m.kernel("late", 2'990, 5, 99);
  const Drawn drawn(m.trace);
  EXPECT_GE(drawn.drawing.from, -10'000'000);
  EXPECT_LE(drawn.drawing.to, 10'000'000);
}

TEST(Drawing, IsNothingForAnAnswerWithoutVerdict) {
  EXPECT_EQ(draw({}, 0).step, -1);
  EXPECT_EQ(render_drawing({}, {}, 0), "null\n");
}

}  // namespace
}  // namespace culprit::report
