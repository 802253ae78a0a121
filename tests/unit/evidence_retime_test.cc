// Retiming against a small machine that runs a program of launches, host work, waits and streams: the
// recorded step must come out again, and a changed step must come out as the machine runs it.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "evidence/retime_graph.h"
#include "run_builder.h"

namespace culprit::evidence {
namespace {

using known::Owner;

constexpr Nanos kLatency = 6'000, kGap = 1'000, kCallCost = 4'000, kReturn = 3'000;

struct Item {
  enum What { kLaunch, kWait } what = kLaunch;
  std::size_t group = 0;
  Nanos work = 0;  // of the host in front of the call
  Nanos dur = 0;   // of the kernel
  int stream = 0;
  bool after_other = false;  // waits for the last kernel of the other stream
};
using Program = std::vector<Item>;

// What a change does to the machine itself.
struct Machine {
  std::vector<Item> step;
  int steps = 8;
  double host = 1;
  std::vector<double>
      scale;  // by group; 0 removes kernel and launch call, not the work in front of it
  bool waits = true;

  // Runs the program; the run, and in `mean` the mean of its steps but the first and the last.
  void run(RunBuilder& builder, Nanos& mean) const {
    const store::ThreadId host_thread = builder.thread("31742");
    const std::array streams{builder.thread("stream 13"), builder.thread("stream 14")};
    std::vector<run::GroupId> groups;
    for (std::size_t g = 0; g < scale.size(); ++g) {
      groups.push_back(
          builder.group(g == 1 ? "ncclAllReduce" : "gemm", g == 1 ? Owner::kComm : Owner::kGemm));
    }
    Nanos now = 0;
    std::array<Nanos, 2> free{};
    std::vector<Nanos> begins;
    for (int s = 0; s < steps; ++s) {
      bool first = true;
      for (const Item& item : step) {
        now += std::llround(static_cast<double>(item.work) * host);
        if (item.what == Item::kWait) {
          if (!waits) continue;
          const Nanos done = std::max({now, free[0], free[1]}) + std::llround(kReturn * host);
          builder.call("cudaStreamSynchronize", host_thread, now, done - now);
          now = done;
          continue;
        }
        const double factor = scale[item.group];
        if (factor == 0) continue;
        const Nanos cost = std::llround(kCallCost * host);
        const auto at = static_cast<std::size_t>(item.stream);
        Nanos begin = std::max(now + kLatency, free[at] > 0 ? free[at] + kGap : 0);
        if (item.after_other) begin = std::max(begin, free[1 - at] + kGap);
        const Nanos dur = std::llround(static_cast<double>(item.dur) * factor);
        builder.kernel(groups[item.group], begin, dur,
                       builder.call("cudaLaunchKernel", host_thread, now, cost), {}, false, -1,
                       streams[at]);
        free[at] = begin + dur;
        now += cost;
        if (first) begins.push_back(begin);
        first = false;
      }
    }
    for (std::size_t s = 0; s + 1 < begins.size(); ++s) builder.step(begins[s], begins[s + 1]);
    mean = (begins.back() - begins[begins.size() / 2]) /
           static_cast<Nanos>(begins.size() - 1 - begins.size() / 2);
  }
};

struct Predicted {
  Nanos step = 0;
  Bound bound{};
  double error = 0;
};

Predicted predict(const Machine& machine, const Change& change) {
  RunBuilder builder;
  Nanos mean = 0;
  machine.run(builder, mean);
  const run::Run& run = builder.build();
  const Retimer retimer(run, HostView(run));
  EXPECT_EQ(retimer.off(), "");
  const Retimed retimed = retimer.retime(change);
  Nanos path = 0;
  for (const Nanos ns : retimed.path) path += ns;
  EXPECT_NEAR(static_cast<double>(path), static_cast<double>(retimed.step), 8);
  return {retimed.step, retimed.bound, retimer.error()};
}

Nanos truth(const Machine& machine) {
  RunBuilder builder;
  Nanos mean = 0;
  machine.run(builder, mean);
  return mean;
}

// `layers` times two kernels: a cast (group 0) and the rest (group 2), `work` of the host each.
Machine decode(Nanos work, Nanos cast, Nanos rest, int layers = 40) {
  Machine machine;
  machine.scale = {1, 1, 1};
  for (int i = 0; i < layers; ++i) {
    machine.step.push_back({Item::kLaunch, 0, work, cast});
    machine.step.push_back({Item::kLaunch, 2, work, rest});
  }
  machine.step.push_back({Item::kWait, 0, work, 0});
  return machine;
}

Change remove_casts() {
  Change change;
  change.scale = {0, 1, 1};
  return change;
}

void expect_close(Nanos predicted, Nanos measured, double within = 0.01) {
  EXPECT_NEAR(static_cast<double>(predicted) / static_cast<double>(measured), 1, within)
      << predicted << " ns predicted, " << measured << " ns measured";
}

TEST(Retime, GivesTheRecordedStepAgain) {
  for (const Nanos work : {2'000, 20'000, 200'000}) {
    const Machine machine = decode(work, 60'000, 40'000);
    const Predicted same = predict(machine, {});
    EXPECT_LT(same.error, 0.01) << work;
    expect_close(same.step, truth(machine));
  }
}

TEST(Retime, RemovedKernelsOfADeviceBoundStepAreGone) {
  Machine machine = decode(2'000, 60'000, 40'000);
  const Predicted after = predict(machine, remove_casts());
  machine.scale[0] = 0;
  expect_close(after.step, truth(machine));
  EXPECT_EQ(after.bound, Bound::kDevice);
}

TEST(Retime, HostBoundsTheStepOnceTheKernelsAreGone) {
  Machine machine = decode(30'000, 90'000, 10'000);
  const Predicted after = predict(machine, remove_casts());
  machine.scale[0] = 0;
  expect_close(after.step, truth(machine));
  EXPECT_EQ(after.bound, Bound::kHostLaunch);
  EXPECT_EQ(predict(machine, {}).bound, Bound::kHostLaunch);
}

TEST(Retime, FasterHostIsWhatTheMachineSays) {
  Machine machine = decode(50'000, 20'000, 20'000);
  Change change;
  change.host = 0.5;
  const Predicted after = predict(machine, change);
  machine.host = 0.5;
  expect_close(after.step, truth(machine), 0.02);
}

TEST(Retime, WaitsThatAreGoneLetTheHostRunAhead) {
  Machine machine = decode(1'000, 20'000, 20'000);
  machine.step.push_back({Item::kLaunch, 2, 300'000, 5'000});  // host work behind the wait
  Change change;
  change.no_waits = true;
  const Predicted after = predict(machine, change);
  machine.waits = false;
  expect_close(after.step, truth(machine), 0.02);
}

TEST(Retime, KernelsOfAnotherStreamAreWaitedFor) {
  Machine machine;
  machine.scale = {1, 1, 1};
  for (int i = 0; i < 40; ++i) {
    machine.step.push_back({Item::kLaunch, 0, 2'000, 50'000, 0, i > 0});
    machine.step.push_back({Item::kLaunch, 1, 2'000, 30'000, 1, true});
  }
  machine.step.push_back({Item::kWait, 0, 2'000, 0});
  const Predicted same = predict(machine, {});
  expect_close(same.step, truth(machine));
  Change change;
  change.scale = {0.1, 1, 1};
  const Predicted after = predict(machine, change);
  machine.scale[0] = 0.1;
  expect_close(after.step, truth(machine), 0.03);
  EXPECT_EQ(after.bound, Bound::kCommunication);
}

TEST(Retime, DrawnMachinesAndChangesComeOutRight) {
  std::mt19937 random(20'260'301);
  const auto draw = [&](Nanos from, Nanos to) {
    return std::uniform_int_distribution<Nanos>(from, to)(random);
  };
  for (int round = 0; round < 60; ++round) {
    const Nanos usual_work = draw(1'000, 60'000), usual_dur = draw(2'000, 120'000);
    Machine machine;
    machine.scale = {1, 1, 1};
    for (Nanos i = 0, n = draw(20, 120); i < n; ++i) {
      const std::size_t group = draw(0, 2) == 0 ? 0 : 2;
      machine.step.push_back({Item::kLaunch, group, draw(usual_work / 2, usual_work * 3 / 2),
                              draw(usual_dur / 2, usual_dur * 3 / 2)});
      if (draw(0, 40) == 0) machine.step.push_back({Item::kWait, 0, 1'000, 0});
    }
    machine.step.push_back({Item::kWait, 0, 1'000, 0});
    machine.step.push_back({Item::kLaunch, 2, usual_work, usual_dur});
    const Predicted same = predict(machine, {});
    EXPECT_LT(same.error, 0.01) << "round " << round;
    const double scale = static_cast<double>(draw(0, 3)) / 4;
    Change change;
    change.scale = {scale, 1, 1};
    const Predicted after = predict(machine, change);
    machine.scale[0] = scale;
    expect_close(after.step, truth(machine), 0.03);
  }
}

// The check must be able to fail: without its edges the graph does not give the step again.
class DeletedEdge : public ::testing::Test {
 protected:
  double error_without(std::uint32_t RetimeNode::*edge, const Machine& machine) {
    RunBuilder builder;
    Nanos mean = 0;
    machine.run(builder, mean);
    const run::Run& run = builder.build();
    RetimeGraph graph;
    EXPECT_EQ(build_graph(run, HostView(run), graph), "");
    for (RetimeNode& node : graph.nodes) {
      if (node.kind == RetimeNode::Kind::kActivity) node.*edge = RetimeNode::kNone;
    }
    const Nanos again = window_length(graph, run_graph(graph, {}));
    return std::abs(static_cast<double>(again - graph.recorded)) /
           static_cast<double>(graph.recorded);
  }
};

TEST_F(DeletedEdge, LaunchOfAHostBoundStepIsMissed) {
  EXPECT_GT(error_without(&RetimeNode::trigger, decode(50'000, 10'000, 10'000)), 0.05);
}

TEST_F(DeletedEdge, StreamOrderOfADeviceBoundStepIsMissed) {
  EXPECT_GT(error_without(&RetimeNode::before, decode(2'000, 60'000, 40'000)), 0.05);
}

TEST(RetimeOff, WithoutLaunches) {
  RunBuilder builder;
  const run::GroupId gemm = builder.group("gemm", Owner::kGemm);
  for (Nanos i = 0; i < 10; ++i) builder.kernel(gemm, i * 1'000, 900);
  builder.step(0, 10'000);
  const run::Run& run = builder.build();
  EXPECT_NE(Retimer(run, HostView(run)).off().find("launches"), std::string::npos);
}

TEST(RetimeOff, WhereNothingExplainsTheWaiting) {
  RunBuilder builder;
  const store::ThreadId host = builder.thread("1");
  const run::GroupId gemm = builder.group("gemm", Owner::kGemm);
  // Each kernel begins 100 us after everything that the trace shows.
  for (Nanos i = 0; i < 40; ++i) {
    builder.kernel(gemm, i * 130'000, 30'000,
                   builder.call("cudaLaunchKernel", host, -500'000 + i * 5'000, 4'000));
  }
  for (Nanos i = 0; i < 4; ++i) builder.step(i * 1'300'000, (i + 1) * 1'300'000);
  const run::Run& run = builder.build();
  EXPECT_NE(Retimer(run, HostView(run)).off().find("nothing in the trace explains"),
            std::string::npos);
}

}  // namespace
}  // namespace culprit::evidence
