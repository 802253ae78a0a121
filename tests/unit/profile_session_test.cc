// Options, the environment, files: when a session is on, and what it says when it cannot be.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include "unit/profile_trace.h"

namespace culprit::profile {
namespace {

// A variable of the environment for the length of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

Report decode(Session& session, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Step step(Mark{.batch = 8, .tokens = 8});
    run_kernel("k");
  }
  return session.finish();
}

TEST(Session, OffMeansNoFileAndNoReport) {
  const Folder folder;
  Options options = options_for(folder, 0, 1);
  options.on = false;
  Session session(options);
  EXPECT_FALSE(session.on());
  EXPECT_FALSE(session.error());
  EXPECT_FALSE(recording());
  const Report report = decode(session, 5);
  EXPECT_FALSE(report.error);
  EXPECT_EQ(report.trace + report.summary, "");
  EXPECT_TRUE(folder.files().empty());
}

TEST(Session, TheEnvironmentBeatsTheOptions) {
  const Folder folder;
  const Variable on("CULPRIT_PROFILE_DECODE", "1"), warmup("CULPRIT_PROFILE_WARMUP", "2"),
      steps("CULPRIT_PROFILE_STEPS", "3"),
      output("CULPRIT_PROFILE_OUTPUT", folder.file("env.json.gz"));
  Options options = options_for(folder, 0, 1);
  options.on = false;
  options.environment = true;
  Session session(options);
  ASSERT_TRUE(session.on());
  const Report report = decode(session, 10);
  EXPECT_EQ(report.trace, folder.file("env.json.gz"));
  EXPECT_EQ(report.steps, 3);
  EXPECT_EQ(parse(report.trace).document["culprit_profile"]["warmup"], 2);
}

TEST(Session, TheEnvironmentCanTurnItOff) {
  const Folder folder;
  const Variable off("CULPRIT_PROFILE_DECODE", "0");
  Options options = options_for(folder, 0, 1);
  options.environment = true;
  EXPECT_FALSE(Session(options).on());
  EXPECT_TRUE(folder.files().empty());
}

TEST(Session, WordsThatAreNoNumbersAreErrorsThatNameTheVariable) {
  const Folder folder;
  const std::pair<const char*, const char*> bad[] = {
      {"CULPRIT_PROFILE_DECODE", "yes"},   {"CULPRIT_PROFILE_WARMUP", "-1"},
      {"CULPRIT_PROFILE_WARMUP", "2x"},    {"CULPRIT_PROFILE_STEPS", "0"},
      {"CULPRIT_PROFILE_STEPS", "thirty"}, {"CULPRIT_PROFILE_STEPS", "99999999999999999999"}};
  for (const auto& [name, value] : bad) {
    const Variable variable(name, value);
    Options options = options_for(folder, 0, 1);
    options.environment = true;
    Session session(options);
    EXPECT_FALSE(session.on()) << name << "=" << value;
    ASSERT_TRUE(session.error()) << name << "=" << value;
    EXPECT_EQ(session.error()->where, name);
    EXPECT_NE(session.error()->what.find(value), std::string::npos);
    EXPECT_FALSE(session.error()->hint.empty());
  }
}

TEST(Session, OptionsThatMakeNoSenseAreErrors) {
  const Folder folder;
  const auto refused = [&](auto change) {
    Options options = options_for(folder, 0, 1);
    change(options);
    Session session(options);
    return !session.on() && session.error() && !session.error()->hint.empty();
  };
  EXPECT_TRUE(refused([](Options& o) { o.warmup = -1; }));
  EXPECT_TRUE(refused([](Options& o) { o.steps = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.rank = 1; }));
  EXPECT_TRUE(refused([](Options& o) { o.rank = -1; }));
  EXPECT_TRUE(refused([](Options& o) { o.output = "trace.json.zst"; }));
  EXPECT_TRUE(refused([](Options& o) { o.output = ""; }));
  EXPECT_TRUE(refused([](Options& o) { o.buffer_bytes = std::size_t{1} << 60; }));
  EXPECT_TRUE(folder.files().empty());
}

TEST(Session, AFileThatCannotBeWrittenIsSaidBeforeTheRun) {
  const Folder folder;
  Options options = options_for(folder, 0, 1);
  options.output = folder.file("nowhere/t.json");
  Session session(options);
  EXPECT_FALSE(session.on());
  ASSERT_TRUE(session.error());
  EXPECT_EQ(session.error()->where, options.output);
  EXPECT_NE(session.error()->what.find("No such file"), std::string::npos);
  EXPECT_NE(session.error()->hint.find("CULPRIT_PROFILE_OUTPUT"), std::string::npos);
  EXPECT_TRUE(decode(session, 3).error) << "the report tells it again";
}

TEST(Session, AFullDiskIsToldAndLeavesNothing) {
  const Folder folder;
  Options options = options_for(folder, 0, 300);
  Session session(options);
  ASSERT_TRUE(session.on());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Report report = decode(session, 300);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->what.find("File too large"), std::string::npos) << report.error->text();
  EXPECT_TRUE(report.trace.empty());
  EXPECT_TRUE(folder.files().empty());
}

TEST(Session, OneAtATime) {
  const Folder folder;
  Session first(options_for(folder, 0, 1));
  {
    Session second(options_for(folder, 0, 1));
    EXPECT_FALSE(second.on());
    EXPECT_TRUE(second.error());
  }
  EXPECT_EQ(decode(first, 2).steps, 1);
  Session third(options_for(folder, 0, 2));
  EXPECT_TRUE(third.on());
  EXPECT_EQ(decode(third, 4).steps, 2);
}

TEST(Session, EachRankHasItsOwnFile) {
  const Folder folder;
  Options options = options_for(folder, 0, 1);
  options.output = folder.file("d.trace.json.gz");
  options.rank = 3;
  options.ranks = 4;
  options.backend = "mpi";
  Session session(options);
  const Report report = decode(session, 1);
  EXPECT_EQ(report.trace, folder.file("d-rank3.trace.json.gz"));
  EXPECT_EQ(read(report.trace).substr(0, 1), "{");
  EXPECT_EQ(parse(report.trace).document["distributedInfo"],
            Json({{"backend", "mpi"}, {"rank", 3}, {"world_size", 4}}));
}

TEST(Session, AnExistingTraceStaysUntilTheNewOneIsWhole) {
  const Folder folder;
  {
    Session session(options_for(folder, 0, 2));
    decode(session, 2);
  }
  Session session(options_for(folder, 5, 2));
  EXPECT_TRUE(decode(session, 2).error);
  EXPECT_EQ(parse(folder.file("t.json")).all("kernel").size(), 2U);
  EXPECT_EQ(folder.files(), std::vector<std::string>{"t.json"});
}

TEST(Session, ASecondFinishGivesTheErrorOfTheFirstOrNothing) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  EXPECT_EQ(decode(session, 1).steps, 1);
  EXPECT_FALSE(session.on());
  EXPECT_EQ(session.finish().trace, "");
}

TEST(Session, TheSummaryAddsUp) {
  const Folder folder;
  Session session(options_for(folder, 0, 4));
  for (int i = 0; i < 4; ++i) {
    const Step step(Mark{.batch = 1});
    run_kernel("twice");
    run_kernel("twice");
    run_kernel("once");
  }
  const Report report = session.finish();
  EXPECT_NE(report.summary.find(report.trace + ": 4 steps"), std::string::npos) << report.summary;
  double shares = 0;
  int rows = 0;
  std::istringstream lines(report.summary);
  for (std::string line; std::getline(lines, line);) {
    double total = 0, share = 0, per_step = 0, mean = 0;
    long long calls = 0;
    char name[16] = "";
    if (std::sscanf(line.c_str(), "%lf %lf %% %lld %lf %lf %15s", &total, &share, &calls, &per_step,
                    &mean, name) != 6)
      continue;
    ++rows;
    shares += share;
    EXPECT_EQ(calls, std::string(name) == "twice" ? 8 : 4);
    EXPECT_DOUBLE_EQ(per_step, std::string(name) == "twice" ? 2 : 1);
  }
  EXPECT_EQ(rows, 2);
  EXPECT_NEAR(shares, 100, 0.2);
}

}  // namespace
}  // namespace culprit::profile
