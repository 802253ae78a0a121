// Ranks side by side, against a small machine that runs them: clocks, meetings, who is waited for, and
// what a change of one rank does to all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "evidence/rank_skew.h"
#include "evidence/ranks.h"

namespace culprit::evidence {
namespace {

struct TrueClock {
  Nanos offset = 0;
  double drift = 0;
  Nanos show(Nanos t) const {
    return t + offset + static_cast<Nanos>(std::llround(static_cast<double>(t) * drift));
  }
};

// Ranks that work, then meet, again and again. The slow oracle: it is stepped meeting by meeting.
struct Machine {
  std::vector<std::vector<Nanos>> own;  // by meeting, then rank
  std::vector<Nanos> transfer;          // by meeting
  std::vector<TrueClock> clocks;        // by rank
  Nanos scatter = 0;                    // of the ends
  std::vector<RankRecord> records;
  Nanos end = 0;

  void run() {
    const std::size_t ranks = clocks.size();
    std::mt19937_64 random(7);
    records.assign(ranks, {});
    std::vector<Nanos> left(ranks, 0);
    for (std::size_t r = 0; r < ranks; ++r) {
      records[r].world = static_cast<std::int64_t>(ranks);
      records[r].kinds = {
          {"[0, 1]", "allreduce of 4096 BFloat16", static_cast<std::int64_t>(ranks)}};
      records[r].steps = 1;
    }
    for (std::size_t m = 0; m < own.size(); ++m) {
      std::vector<Nanos> came(ranks);
      for (std::size_t r = 0; r < ranks; ++r) came[r] = left[r] + own[m][r];
      end = *std::max_element(came.begin(), came.end()) + transfer[m];
      for (std::size_t r = 0; r < ranks; ++r) {
        left[r] =
            end +
            (scatter > 0 ? static_cast<Nanos>(random() % static_cast<std::uint64_t>(scatter)) : 0);
        RankCall call;
        call.begin = clocks[r].show(came[r]);
        call.end = clocks[r].show(left[r]);
        call.since.ns[static_cast<std::size_t>(Doing::kWork)] = own[m][r];
        records[r].calls.push_back(call);
        records[r].exposed_comm.push_back({call.begin, call.end});
      }
    }
  }

  std::vector<const RankRecord*> pointers() const {
    std::vector<const RankRecord*> all;
    for (const RankRecord& record : records) all.push_back(&record);
    return all;
  }
};

// Work of 90 to 110 us between meetings of 10 to 20 us.
Machine machine_of(std::size_t ranks, std::size_t meetings, unsigned seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](Nanos least, Nanos most) {
    return least + static_cast<Nanos>(random() % static_cast<std::uint64_t>(most - least));
  };
  Machine machine;
  for (std::size_t m = 0; m < meetings; ++m) {
    machine.own.emplace_back();
    for (std::size_t r = 0; r < ranks; ++r) machine.own.back().push_back(draw(90'000, 110'000));
    machine.transfer.push_back(draw(10'000, 20'000));
  }
  machine.clocks.resize(ranks);
  return machine;
}

TEST(RankClocks, OffsetAndDriftAreRecoveredDespiteEndsThatLieFarOff) {
  std::mt19937_64 random(3);
  for (const TrueClock truth : {TrueClock{50'000'000, 50e-6}, TrueClock{-50'000'000, -50e-6},
                                TrueClock{1'234, 0}, TrueClock{0, 7e-6}}) {
    std::vector<SharedEnd> ends;
    for (Nanos t = 1'000; t < 1'000'000'000; t += 500'000) {
      const auto noise = static_cast<Nanos>(random() % 3'000) - 1'500;
      const Nanos odd = random() % 10 == 0 ? static_cast<Nanos>(random() % 2'000'000) : 0;
      ends.push_back({t, truth.show(t) + noise + odd});
    }
    const Clock clock = fit_clock(ends);
    ASSERT_TRUE(clock.aligned);
    EXPECT_NEAR(static_cast<double>(clock.offset),
                static_cast<double>(truth.show(clock.at) - clock.at), 2'000);
    EXPECT_NEAR(clock.drift, truth.drift, 1e-6);
    EXPECT_LT(clock.residual, 2'000);
    for (const Nanos t : {Nanos{1'000}, Nanos{500'000'000}, Nanos{1'000'000'000}})
      EXPECT_NEAR(static_cast<double>(clock.to_reference(truth.show(t))), static_cast<double>(t),
                  2'000);
  }
}

TEST(RankClocks, FewEndsGiveNoDriftAndNoneNoClock) {
  EXPECT_FALSE(fit_clock({}).aligned);
  const Clock clock = fit_clock({{0, 5'000}, {1'000'000, 1'005'900}, {2'000'000, 2'004'800}});
  EXPECT_TRUE(clock.aligned);
  EXPECT_EQ(clock.drift, 0);
  EXPECT_NEAR(static_cast<double>(clock.offset), 5'000, 1'000);
}

TEST(RankClocks, ARecordingThatBeganLaterIsAlignedByItsOrder) {
  Machine machine = machine_of(2, 200, 5);
  machine.clocks[1] = {3'000'000, 20e-6};
  machine.scatter = 2'000;
  machine.run();
  auto& calls = machine.records[1].calls;
  calls.erase(calls.begin(), calls.begin() + 37);
  const std::vector<Clock> clocks = align_clocks(machine.pointers());
  ASSERT_TRUE(clocks[1].aligned);
  EXPECT_NEAR(static_cast<double>(clocks[1].offset),
              3'000'000.0 + 20e-6 * static_cast<double>(clocks[1].at), 2'000);
}

TEST(RankClocks, SequenceNumbersBeatTheOrder) {
  Machine machine = machine_of(2, 100, 9);
  machine.run();
  for (RankRecord& record : machine.records)
    for (std::size_t i = 0; i < record.calls.size(); ++i)
      record.calls[i].sequence = static_cast<std::int64_t>(i) + 10;
  auto& calls = machine.records[1].calls;
  for (int i = 0; i < 40; ++i)
    calls.erase(calls.begin() + i);  // every second one of the first is lost
  const std::vector<Clock> clocks = align_clocks(machine.pointers());
  EXPECT_EQ(clocks[1].ends, 60);
  EXPECT_EQ(clocks[1].offset, 0);
  EXPECT_EQ(clocks[1].residual, 0);
}

TEST(RankClocks, RanksThatNeverMetAreNotAligned) {
  Machine machine = machine_of(2, 50, 1);
  machine.run();
  machine.records[1].kinds[0].group = "[2, 3]";
  EXPECT_FALSE(align_clocks(machine.pointers())[1].aligned);
  EXPECT_FALSE(relate_ranks(machine.pointers()).known());
}

TEST(RankMeetings, TheLastOneStartsTheTransfer) {
  Machine machine;
  machine.clocks = {{}, {7'000'000, 0}, {-2'000'000, 0}};
  for (int m = 0; m < 20; ++m) {
    machine.own.push_back({100'000, 130'000, 110'000 + m});
    machine.transfer.push_back(15'000);
  }
  machine.run();
  const std::vector<const RankRecord*> records = machine.pointers();
  const Meetings meetings = find_meetings(records, align_clocks(records));
  ASSERT_EQ(meetings.all.size(), 20U);
  for (const Meeting& meeting : meetings.all) {
    EXPECT_EQ(meetings.members[meeting.last].rank, 1U);
    EXPECT_EQ(meeting.transfer(), 15'000);
    EXPECT_TRUE(meeting.whole);
  }
  const Skew skew = relate_ranks(records);
  EXPECT_EQ(skew.ranks[0].wait, 20 * 30'000);
  EXPECT_EQ(skew.ranks[1].wait, 0);
  EXPECT_EQ(skew.ranks[2].wait, 20 * 20'000 - 190);
  EXPECT_EQ(skew.ranks[0].waits_for, 1U);
  EXPECT_EQ(skew.ranks[1].last, 20);
  EXPECT_EQ(skew.late, std::vector<std::size_t>{1});
}

TEST(RankMeetings, WhoIsNotInTheInputIsWaitedForToo) {
  Machine machine = machine_of(3, 60, 11);
  for (std::size_t m = 0; m < 60; m += 3) machine.own[m][2] = 900'000;
  machine.run();
  machine.records.pop_back();
  const std::vector<const RankRecord*> records = machine.pointers();
  const Skew skew = relate_ranks(records);
  ASSERT_TRUE(skew.known());
  EXPECT_FALSE(skew.whole);
  EXPECT_TRUE(skew.late.empty());
  EXPECT_NEAR(static_cast<double>(skew.ranks[0].absent), 20 * 790'000, 20 * 20'000);
}

TEST(RankRetime, ReproducesAndPredictsWhatTheMachineDoes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Machine machine = machine_of(8, 100, seed);
    for (auto& own : machine.own) own[5] += 40'000;
    machine.run();
    const std::vector<const RankRecord*> records = machine.pointers();
    const Meetings meetings = find_meetings(records, align_clocks(records));
    const RankRetimer retimer(meetings, 8);
    EXPECT_EQ(retimer.time(retimer.own()), retimer.recorded());

    Machine cured = machine;
    for (auto& own : cured.own) {
      std::vector<Nanos> others(own);
      others.erase(others.begin() + 5);
      std::nth_element(others.begin(), others.begin() + 3, others.end());
      own[5] = std::min(own[5], others[3]);
    }
    cured.run();
    std::vector<bool> late(8, false);
    late[5] = true;
    const Nanos before_first = records[0]->calls.front().begin;
    const Nanos earliest = *std::min_element(machine.own[0].begin(), machine.own[0].end());
    EXPECT_GE(before_first, earliest);
    // The first meeting's own times count from the earliest arrival.
    EXPECT_NEAR(static_cast<double>(retimer.time(retimer.as_the_others(late))),
                static_cast<double>(cured.end - earliest), 1);
  }
}

TEST(RankRetime, ASavingThatTurnsIntoWaitingIsWorthNothing) {
  Machine machine = machine_of(4, 100, 2);
  for (auto& own : machine.own) own[3] = 300'000;
  machine.run();
  const std::vector<const RankRecord*> records = machine.pointers();
  const Skew skew = relate_ranks(records);
  const std::vector<double> early{0.5, 1, 1, 1}, late{1, 1, 1, 0.5}, all{0.5, 0.5, 0.5, 0.5};
  EXPECT_EQ(skew.step_ratio(early), 1);
  EXPECT_NEAR(skew.step_ratio(late), 0.52, 0.02);
  EXPECT_NEAR(skew.step_ratio(all), 0.52, 0.02);
}

TEST(RankSkew, NobodyIsLateWhereAllAreEqualOrTakeTurns) {
  Machine equal = machine_of(8, 300, 4);
  equal.run();
  EXPECT_TRUE(relate_ranks(equal.pointers()).late.empty());
  Machine turns = machine_of(8, 304, 4);
  for (std::size_t m = 0; m < 304; ++m) turns.own[m][m % 8] += 200'000;
  turns.run();
  EXPECT_TRUE(relate_ranks(turns.pointers()).late.empty());
}

TEST(RankSkew, TwoOfEightAreLateTogether) {
  Machine machine = machine_of(8, 300, 4);
  for (auto& own : machine.own) own[2] += 50'000, own[6] += 50'000;
  machine.run();
  std::vector<std::size_t> late = relate_ranks(machine.pointers()).late;
  std::sort(late.begin(), late.end());
  EXPECT_EQ(late, (std::vector<std::size_t>{2, 6}));
}

// Causes on the device, from what kernels of one name do on the ranks.
LateCause cause_with(const RankKernel& late_kernel) {
  Machine machine = machine_of(4, 50, 6);
  for (auto& own : machine.own) own[1] += 60'000;
  machine.run();
  for (RankRecord& record : machine.records)
    record.kernels = {{"gemm", known::Owner::kGemm, 50, 5'000, 2'000'000},
                      {"moe", known::Owner::kMoeGemm, 50, 5'000, 2'000'000}};
  for (RankKernel& kernel : machine.records[1].kernels)
    if (kernel.name == late_kernel.name) kernel = late_kernel;
  const Skew skew = relate_ranks(machine.pointers());
  EXPECT_EQ(skew.late, std::vector<std::size_t>{1});
  return skew.ranks[1].cause;
}

TEST(RankSkew, TellsMoreWorkFromSlowKernels) {
  EXPECT_EQ(cause_with({"gemm", known::Owner::kGemm, 50, 5'000, 5'000'000}),
            LateCause::kSlowKernels);
  EXPECT_EQ(cause_with({"gemm", known::Owner::kGemm, 50, 9'000, 5'000'000}), LateCause::kMoreWork);
  EXPECT_EQ(cause_with({"gemm", known::Owner::kGemm, 90, 9'000, 5'000'000}), LateCause::kMoreWork);
  EXPECT_EQ(cause_with({"moe", known::Owner::kMoeGemm, 50, 5'000, 5'000'000}),
            LateCause::kExpertImbalance);
}

TEST(Ranks, StrangersAreTold) {
  const auto rank = [](std::int64_t number, std::int64_t world, Nanos begin, const char* kernel) {
    RankFigures figures;
    figures.rank = number;
    figures.record.world = world;
    figures.record.begin = begin;
    figures.record.end = begin + 1'000'000'000;
    figures.record.kernels = {{kernel, known::Owner::kGemm, 1, 1, 1'000}};
    return figures;
  };
  const auto what = [](const std::vector<RankFigures>& figures) {
    const Status same = check_same_run(figures, {"a", "b"});
    return same.ok() ? std::string("same") : same.error().what;
  };
  constexpr Nanos kHour = 3'600'000'000'000;
  EXPECT_EQ(what({rank(0, 8, 0, "k"), rank(1, 8, 5, "k")}), "same");
  EXPECT_NE(what({rank(1, 8, 0, "k"), rank(1, 8, 5, "k")}).find("rank 1"), std::string::npos);
  EXPECT_NE(what({rank(0, 8, 0, "k"), rank(1, 4, 5, "k")}).find("4 ranks"), std::string::npos);
  EXPECT_NE(what({rank(0, 8, 0, "k"), rank(1, 8, kHour, "k")}).find("recorded"), std::string::npos);
  EXPECT_NE(what({rank(0, 8, 0, "k"), rank(1, 8, 5, "other")}).find("kernel time"),
            std::string::npos);
}

}  // namespace
}  // namespace culprit::evidence
