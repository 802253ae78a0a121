// The timeline, the budget and exposed time against a slow oracle that asks for every nanosecond.
#include "evidence/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "evidence/measures.h"
#include "run_builder.h"

namespace culprit::evidence {
namespace {

using known::Owner;

bool hides(Owner kind) {
  return kind != Owner::kComm && kind != Owner::kMemcpy && kind != Owner::kMemset;
}

// Who owns [t, t + 1): compute before transfers, then the earliest begin, then trace order.
run::ActivityId owner_at(const run::Run& run, Nanos t) {
  run::ActivityId best;
  for (std::size_t i = 0; i < run.activities.size(); ++i) {
    const run::Activity& activity = run.activities[i];
    if (activity.begin > t || activity.end <= t) continue;
    if (!best.valid() || (hides(activity.kind) && !hides(run.activities[best.index].kind))) {
      best = run::ActivityId(i);
    }
  }
  return best;
}

constexpr Owner kKinds[] = {Owner::kGemm, Owner::kAttention, Owner::kComm, Owner::kMemcpy};

void random_run(RunBuilder& builder, std::mt19937& random) {
  std::vector<run::GroupId> groups;
  for (int i = 0; i < 6; ++i) {
    groups.push_back(builder.group("k" + std::to_string(i), kKinds[random() % std::size(kKinds)]));
  }
  const std::size_t count = random() % 12;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<Nanos>(random() % 60);
    builder.kernel(groups[random() % groups.size()], begin, static_cast<Nanos>(random() % 16));
  }
  // Up to four steps side by side, some with holes between them, some not used.
  Nanos at = static_cast<Nanos>(random() % 8);
  while (at < 64) {
    const Nanos end = at + 1 + static_cast<Nanos>(random() % 30);
    builder.step(at, end, random() % 4 != 0);
    at = end + static_cast<Nanos>(random() % 2 * 5);
  }
  builder.build();
}

TEST(Timeline, AgreesWithTheOwnerOfEachNanosecond) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    RunBuilder builder;
    random_run(builder, random);
    const run::Run& run = builder.run();
    const std::vector<Segment> segments = timeline(run.activities);
    for (std::size_t i = 1; i < segments.size(); ++i) {
      ASSERT_EQ(segments[i].begin, segments[i - 1].end);
      ASSERT_NE(segments[i].owner, segments[i - 1].owner);
    }
    for (Nanos t = 0; t < 80; ++t) {
      const std::size_t at = segment_at(segments, t);
      const bool covered = at < segments.size() && segments[at].begin <= t;
      ASSERT_EQ(covered ? segments[at].owner : run::ActivityId{}, owner_at(run, t))
          << "round " << round << " ns " << t;
    }
  }
}

TEST(Timeline, BudgetOwnsEachNanosecondOnceAndSumsToTheMean) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    RunBuilder builder;
    random_run(builder, random);
    const run::Run& run = builder.run();
    std::map<Owner, Nanos> total;
    Nanos wall = 0, used = 0;
    for (const run::Step& step : run.steps) {
      if (!step.used) continue;
      ++used;
      wall += step.length();
      for (Nanos t = step.begin; t < step.end; ++t) {
        const run::ActivityId owner = owner_at(run, t);
        ++total[owner.valid() ? run.activities[owner.index].kind : Owner::kUnexplained];
      }
    }
    const Basis basis(run);
    const StepStats stats = measure_steps(basis);
    const std::vector<BudgetRow> budget = measure_budget(basis, measure_gaps(basis), stats.mean);
    Nanos sum = 0;
    for (const BudgetRow& row : budget) {
      sum += row.ns_per_step;
      // No launches here: all idle time is unexplained, and each row is within one of its quotient.
      ASSERT_LE(std::abs(row.ns_per_step - total[row.owner] / used), 1) << "round " << round;
    }
    ASSERT_EQ(sum, stats.mean) << "round " << round;
    if (used > 0) {
      ASSERT_LE(std::abs(stats.mean - wall / used), 1);
    }
  }
}

TEST(Timeline, BusyAndGapsFillTheSteps) {
  std::mt19937 random(13);
  for (int round = 0; round < 500; ++round) {
    RunBuilder builder;
    random_run(builder, random);
    const run::Run& run = builder.run();
    std::set<Nanos> idle;
    for (const Gap& gap : measure_gaps(Basis(run))) {
      ASSERT_LT(gap.begin, gap.end);
      for (Nanos t = gap.begin; t < gap.end; ++t) ASSERT_TRUE(idle.insert(t).second);
    }
    for (const run::Step& step : run.steps) {
      for (Nanos t = step.begin; step.used && t < step.end; ++t) {
        ASSERT_EQ(idle.count(t) == 1, !owner_at(run, t).valid()) << "round " << round;
      }
    }
  }
}

TEST(Exposed, CountsTheTimeInWhichNothingElseRan) {
  std::mt19937 random(17);
  for (int round = 0; round < 2000; ++round) {
    RunBuilder builder;
    random_run(builder, random);
    const run::Run& run = builder.run();
    std::vector<Nanos> by_group(run.groups.size(), 0);
    std::map<Owner, Nanos> by_kind;
    Nanos pair = 0, used = 0;
    for (const run::Step& step : run.steps) {
      used += step.used ? 1 : 0;
      for (Nanos t = step.begin; step.used && t < step.end; ++t) {
        std::set<std::uint32_t> groups;
        std::set<Owner> kinds;
        for (const run::Activity& activity : run.activities) {
          if (activity.begin > t || activity.end <= t) continue;
          groups.insert(activity.group.index);
          kinds.insert(activity.kind);
        }
        if (groups.size() == 1) ++by_group[*groups.begin()];
        if (kinds.size() == 1) ++by_kind[*kinds.begin()];
        groups.erase(0);
        const bool only_pair = groups.empty() || (groups.size() == 1 && groups.count(1) == 1);
        if (only_pair && !kinds.empty()) ++pair;
      }
    }
    const Exposed exposed = measure_exposed(Basis(run));
    ASSERT_EQ(exposed.by_group, by_group) << "round " << round;
    for (const auto& [kind, ns] : by_kind) {
      ASSERT_EQ(exposed.by_kind[static_cast<std::size_t>(kind)], ns) << "round " << round;
    }
    const std::vector<run::GroupId> both{run::GroupId(0), run::GroupId(1)};
    ASSERT_EQ(exposed_ns_per_step(run, both), used > 0 ? (pair + used / 2) / used : 0);
  }
}

TEST(Timeline, ComputeHidesCommunicationNeverTheReverse) {
  RunBuilder builder;
  const run::GroupId comm = builder.group("nccl", Owner::kComm);
  const run::GroupId gemm = builder.group("gemm", Owner::kGemm);
  builder.kernel(comm, 0, 100);
  builder.kernel(gemm, 40, 20);
  builder.step(0, 100);
  builder.build();
  const Basis basis(builder.run());
  const std::vector<BudgetRow> budget = measure_budget(basis, measure_gaps(basis), basis.mean);
  ASSERT_EQ(budget.size(), 2U);
  EXPECT_EQ(budget[0].owner, Owner::kComm);
  EXPECT_EQ(budget[0].ns_per_step, 80);
  EXPECT_EQ(budget[1].ns_per_step, 20);
}

TEST(Budget, LargestRemaindersRoundUp) {
  // Three steps of 10, 10 and 11 ns: gemm 5 + 5 + 6, attention 5 + 5 + 5; the mean of 31 / 3 is 10.
  RunBuilder builder;
  const run::GroupId gemm = builder.group("gemm", Owner::kGemm);
  const run::GroupId attention = builder.group("attention", Owner::kAttention);
  Nanos at = 0;
  for (const Nanos first : {5, 5, 6}) {
    builder.kernel(gemm, at, first);
    builder.kernel(attention, at + first, 5);
    builder.step(at, at + first + 5);
    at += first + 5;
  }
  builder.build();
  const Basis basis(builder.run());
  EXPECT_EQ(basis.mean, 10);
  const std::vector<BudgetRow> budget = measure_budget(basis, measure_gaps(basis), basis.mean);
  ASSERT_EQ(budget.size(), 2U);
  EXPECT_EQ(budget[0].ns_per_step + budget[1].ns_per_step, 10);
  EXPECT_EQ(budget[0].calls_per_step, 1.0);
}

TEST(Steps, MedianPercentileAndBusyShare) {
  RunBuilder builder;
  const run::GroupId gemm = builder.group("gemm", Owner::kGemm);
  Nanos at = 0;
  for (int i = 1; i <= 100; ++i) {
    builder.kernel(gemm, at, 2 * i);
    builder.kernel(gemm, at + 3 * i, i);
    builder.step(at, at + 10 * i);
    at += 10 * i;
  }
  builder.step(at, at + 5'000'000, false);
  builder.build();
  const StepStats stats = measure_steps(Basis(builder.run()));
  EXPECT_EQ(stats.found, 101);
  EXPECT_EQ(stats.used, 100);
  EXPECT_EQ(stats.mean, 505);
  EXPECT_EQ(stats.median, 505);
  EXPECT_EQ(stats.p99, 990);
  EXPECT_EQ(stats.device_span, 202);
  EXPECT_DOUBLE_EQ(stats.device_busy, 0.75);
}

TEST(Steps, NoUsedStepGivesNoFigures) {
  RunBuilder builder;
  builder.kernel(builder.group("gemm", Owner::kGemm), 0, 10);
  builder.step(0, 10, false);
  const Evidence evidence = measure(builder.build(), {});
  EXPECT_EQ(evidence.steps.mean, 0);
  EXPECT_TRUE(evidence.budget.empty());
  EXPECT_TRUE(evidence.kernels.empty());
}

}  // namespace
}  // namespace culprit::evidence
