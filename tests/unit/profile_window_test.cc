// Which steps are recorded.
#include <thread>

#include "unit/profile_trace.h"

namespace culprit::profile {
namespace {

// Names of the recorded steps, where step i is called "s<i>".
std::vector<std::string> recorded(const Report& report) {
  std::vector<std::string> names;
  for (const Json& mark : parse(report.trace).all("user_annotation")) names.push_back(mark["name"]);
  return names;
}

void make_steps(int from, int to) {
  for (int i = from; i < to; ++i) {
    const Step step(intern("s" + std::to_string(i)));
    run_kernel("k");
  }
}

TEST(Window, HoldsExactlyTheStepsBehindTheWarmup) {
  for (const int warmup : {0, 1, 2, 3}) {
    for (const int steps : {1, 2, 4}) {
      const Folder folder;
      Session session(options_for(folder, warmup, steps));
      ASSERT_TRUE(session.on());
      make_steps(0, 10);
      const Report report = session.finish();
      ASSERT_FALSE(report.error) << report.error->text();
      std::vector<std::string> expected;
      for (int i = warmup; i < warmup + steps; ++i) expected.push_back("s" + std::to_string(i));
      EXPECT_EQ(recorded(report), expected) << warmup << " " << steps;
      EXPECT_EQ(report.steps, steps);
      EXPECT_EQ(report.lost, 0);
      EXPECT_EQ(parse(report.trace).all("kernel").size(), static_cast<std::size_t>(steps));
    }
  }
}

TEST(Window, SpansBetweenItsStepsAreRecordedAndThoseAroundItAreNot) {
  const Folder folder;
  Session session(options_for(folder, 1, 2));
  { const Op op("before the run"); }
  make_steps(0, 1);
  { const Op op("before the window"); }
  make_steps(1, 2);
  { const Op op("between"); }
  make_steps(2, 3);
  { const Op op("behind"); }
  EXPECT_FALSE(recording());
  const Trace trace = parse(session.finish().trace);
  ASSERT_EQ(trace.all("cpu_op").size(), 1U);
  EXPECT_EQ(trace.all("cpu_op")[0]["name"], "between");
}

TEST(Window, TheFileIsThereBeforeTheRunEnds) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  make_steps(0, 1);
  while (!std::filesystem::exists(folder.file("t.json"))) std::this_thread::yield();
  make_steps(1, 3);
  EXPECT_EQ(parse(folder.file("t.json")).all("kernel").size(), 1U);
  EXPECT_EQ(session.finish().steps, 1);
}

TEST(Window, ARunThatEndsWithinItGivesTheStepsItMade) {
  const Folder folder;
  Session session(options_for(folder, 2, 30));
  make_steps(0, 5);
  const Report report = session.finish();
  EXPECT_EQ(recorded(report), (std::vector<std::string>{"s2", "s3", "s4"}));
  EXPECT_NE(report.summary.find("30 steps were asked for: the run ended"), std::string::npos)
      << report.summary;
}

TEST(Window, ARunThatEndsBeforeItIsAnErrorWithBothCountsAndNoFile) {
  const Folder folder;
  Session session(options_for(folder, 20, 30));
  make_steps(0, 7);
  const Report report = session.finish();
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->what.find("after 7 steps"), std::string::npos) << report.error->text();
  EXPECT_NE(report.error->what.find("behind 20"), std::string::npos) << report.error->text();
  EXPECT_FALSE(report.error->hint.empty());
  EXPECT_TRUE(report.trace.empty());
  EXPECT_TRUE(folder.files().empty());
}

TEST(Window, StepsWithinAStepAreMarksAndNotCounted) {
  const Folder folder;
  Session session(options_for(folder, 1, 2));
  for (int i = 0; i < 4; ++i) {
    const Step outer(Mark{.batch = 1});
    const Step inner("draft");
    run_kernel("k");
  }
  const Report report = session.finish();
  EXPECT_EQ(report.steps, 2);
  EXPECT_EQ(recorded(report),
            (std::vector<std::string>{"step[DECODE bs=1]", "draft", "step[DECODE bs=1]", "draft"}));
}

TEST(Window, PausedStepsAreNeitherRecordedNorCounted) {
  const Folder folder;
  Session session(options_for(folder, 1, 3));
  for (int i = 0; i < 8; ++i) {
    if (i % 2 == 1) session.pause();
    make_steps(i, i + 1);
    if (i % 2 == 1) session.resume();
  }
  EXPECT_EQ(recorded(session.finish()), (std::vector<std::string>{"s2", "s4", "s6"}));
}

TEST(Window, ResumingBehindItStartsNothing) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  make_steps(0, 1);
  session.pause();
  session.resume();
  EXPECT_FALSE(recording());
  make_steps(1, 3);
  EXPECT_EQ(session.finish().steps, 1);
}

TEST(Window, WorkThatRunsBehindItIsStillItsLaunchs) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  Ticket ticket;
  {
    const Step step("s0");
    const Launch launch;
    ticket = launch.ticket();
  }
  EXPECT_FALSE(recording());
  std::thread([&] { const Kernel kernel(ticket, "late", {.stream = 3}); }).join();
  const Report report = session.finish();
  ASSERT_FALSE(report.error) << report.error->text();
  EXPECT_EQ(parse(report.trace).one("late")["tid"], 3);
}

TEST(Window, WorkOfLaunchesBeforeItIsNotRecorded) {
  const Folder folder;
  Session session(options_for(folder, 1, 1));
  Ticket early;
  {
    const Step step("s0");
    const Launch launch;
    early = launch.ticket();
  }
  {
    const Step step("s1");
    { const Kernel kernel(early, "early"); }
    run_kernel("own");
  }
  const Trace trace = parse(session.finish().trace);
  ASSERT_EQ(trace.all("kernel").size(), 1U);
  EXPECT_EQ(trace.all("kernel")[0]["name"], "own");
}

}  // namespace
}  // namespace culprit::profile
