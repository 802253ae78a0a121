// Random traces against slow truths: nesting against a search over all rows, steps and activities
// against what a Run promises. Seeds are fixed, so a failure is the same failure again.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::TraceMaker;

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }

 private:
  std::mt19937_64 engine_;
};

struct Range {
  Nanos begin, end;  // us
};

// Properly nested, every begin and end its own microsecond.
void grow_nested(Dice& dice, Nanos begin, Nanos end, std::vector<Range>& ranges) {
  while (end - begin >= 4 && dice.below(5) != 0) {
    const Nanos from = begin + 1 + dice.below((end - begin) / 2);
    const Nanos to = from + 1 + dice.below(end - from - 1);
    ranges.push_back({from, to});
    grow_nested(dice, from, to, ranges);
    begin = to;
  }
}

template <class Table>
std::int64_t innermost(const Table& table, store::ThreadId thread, Nanos at,
                       std::int64_t but = -1) {
  std::int64_t best = -1;
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (static_cast<std::int64_t>(row) == but || table.thread[row] != thread) continue;
    if (table.begin[row] > at || table.begin[row] + table.dur[row] <= at) continue;
    if (best < 0 || table.begin[row] >= table.begin[static_cast<std::size_t>(best)])
      best = static_cast<std::int64_t>(row);
  }
  return best;
}

template <class Row>
std::int64_t number(Row row) {
  return row.valid() ? static_cast<std::int64_t>(row.index) : -1;
}

class RandomNesting : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomNesting, IsThatOfASearchOverAllRows) {
  Dice dice(GetParam());
  TraceMaker m;
  const std::array<store::ThreadId, 2> threads{m.host, m.thread("4001", "4002")};
  for (const auto thread : threads) {
    m.host = thread;
    std::vector<Range> ranges;
    while (ranges.size() < 20) {
      ranges.clear();
      grow_nested(dice, 0, 3'000, ranges);
    }
    if (GetParam() % 2 == 1)  // file order need not be time order
      std::shuffle(ranges.begin(), ranges.end(), std::mt19937(GetParam()));
    for (const Range& r : ranges) {
      m.op("op", r.begin, r.end - r.begin);
      m.frame("a.py(1): f", r.begin, r.end - r.begin);
    }
    for (int i = 0; i < 40; ++i) m.launched("k", dice.below(3'000), 4'000 + i, 1);
  }
  const auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok()) << run.error().what;
  const store::Trace& t = m.trace;
  for (std::size_t row = 0; row < t.ops.size(); ++row) {
    const auto expected =
        innermost(t.ops, t.ops.thread[row], t.ops.begin[row], static_cast<std::int64_t>(row));
    EXPECT_EQ(number(run->op_parent[row]), expected);
    EXPECT_EQ(number(run->frame_parent[row]), expected);
  }
  for (std::size_t call = 0; call < t.calls.size(); ++call) {
    const auto expected = innermost(t.ops, t.calls.thread[call], t.calls.begin[call]);
    EXPECT_EQ(number(run->call_op[call]), expected);
    EXPECT_EQ(number(run->call_frame[call]), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNesting, ::testing::Range(0U, 20U));

// Anything goes: overlapping marks, kernels out of order, ids twice, no launches.
TraceMaker anything(unsigned seed) {
  Dice dice(seed);
  TraceMaker m;
  const std::array<const char*, 6> names{
      "step[DECODE bs=4]", "step[EXTEND bs=1 toks=9]",
      "ProfilerStep#1",    "execute_context_0(0)_generation_2(2)",
      "capture_1_X",       "other"};
  const std::array<const char*, 5> calls{"cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync",
                                         "cudaStreamSynchronize", "cuLaunchKernel"};
  const std::array<store::ThreadId, 2> streams{m.stream, m.thread("0", "9")};
  const std::array<store::ThreadId, 2> hosts{m.host, m.thread("4001", "4002")};
  const std::int64_t range = 1 + dice.below(3'000);
  for (std::int64_t i = dice.below(12); i > 0; --i) {
    m.host = hosts[static_cast<std::size_t>(dice.below(2))];
    m.stream = streams[static_cast<std::size_t>(dice.below(2))];
    const char* name = names[static_cast<std::size_t>(dice.below(names.size()))];
    if (dice.below(3) == 0)
      m.device_mark(name, dice.below(range), dice.below(500));
    else
      m.mark(name, dice.below(range), dice.below(500));
  }
  const std::int64_t ids = 1 + dice.below(400);
  const bool orderly = seed % 4 != 0;  // each call its own id, each kernel its own call, as a rule
  for (std::int64_t i = dice.below(200); i > 0; --i) {
    m.host = hosts[static_cast<std::size_t>(dice.below(2))];
    m.call(calls[static_cast<std::size_t>(dice.below(calls.size()))], dice.below(range),
           dice.below(20), orderly ? i : dice.below(ids), dice.below(40) - 1);
    m.op("aten::x", dice.below(range), dice.below(100), dice.below(40) - 1);
    m.frame("a.py(1): forward_decode", dice.below(range), dice.below(100));
  }
  for (std::int64_t i = 1 + dice.below(orderly ? 600 : 300); i > 0; --i) {
    m.stream = streams[static_cast<std::size_t>(dice.below(2))];
    const Nanos dur = dice.below(30) == 0 ? dice.below(5'000'000) : dice.below(20);
    const std::int64_t own = orderly && dice.below(100) != 0 ? i : dice.below(ids) - 1;
    m.kernel(fmt::format("k{}", dice.below(4)), dice.below(range), dur, own);
  }
  return m;
}

void expect_promises(const culprit::run::Run& run) {
  for (std::size_t i = 1; i < run.activities.size(); ++i)
    ASSERT_LE(run.activities[i - 1].begin, run.activities[i].begin);
  std::vector<StepIndex> step_of(run.activities.size(), -1);
  Nanos last_end = std::numeric_limits<Nanos>::min();
  bool any_used = false;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    const Step& step = run.steps[s];
    ASSERT_LE(last_end, step.begin);
    ASSERT_LE(step.begin, step.end);
    last_end = step.end;
    ASSERT_EQ(step.used, step.why_excluded.empty());
    any_used |= step.used;
    for (std::int64_t i = step.first; i < step.last; ++i)
      step_of[static_cast<std::size_t>(i)] = static_cast<StepIndex>(s);
  }
  ASSERT_TRUE(any_used);
  for (std::size_t i = 0; i < run.activities.size(); ++i) {
    const Activity& a = run.activities[i];
    ASSERT_LE(a.begin, a.end);
    ASSERT_LE(a.end, run.device_span.end);
    ASSERT_EQ(a.step, step_of[i]);
    for (std::size_t s = 0; s + 1 < run.steps.size(); ++s)
      if (run.steps[s].begin <= a.begin && a.begin < run.steps[s].end) {
        ASSERT_EQ(a.step, static_cast<StepIndex>(s));
      }
  }
}

TEST(RandomTraces, GiveARunThatKeepsItsPromisesOrAReason) {
  int built = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const TraceMaker m = anything(seed);
    const auto run = build(m.trace, {});
    if (run.ok()) {
      ++built;
      expect_promises(*run);
      for (const Activity& a : run->activities) (void)source_of(*run, a.call);
    } else {
      EXPECT_EQ(run.error().code, Error::Code::kUnusable);
      EXPECT_FALSE(run.error().note_code.empty());
    }
  }
  EXPECT_GT(built, 50);
}

}  // namespace
}  // namespace culprit::run
