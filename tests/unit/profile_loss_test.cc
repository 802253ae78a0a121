// What becomes of steps that are not whole: the buffer was full, work never ran, spans stay open.
#include <thread>

#include "unit/profile_trace.h"

namespace culprit::profile {
namespace {

constexpr int kKernels = 40;

void make_step(int index) {
  const Step step(intern("s" + std::to_string(index)));
  for (int i = 0; i < kKernels; ++i) {
    const Op op("op", kBf16(8, 6144), kBf16(6144, 6144));
    run_kernel("k");
  }
}

// Every launch has its kernel and every kernel its launch, in whole steps alone.
void expect_whole(const Trace& trace, std::int64_t steps) {
  std::vector<Json> launches, kernels;
  for (const Json& call : trace.all("cuda_runtime"))
    launches.push_back(call["args"]["correlation"]);
  for (const Json& kernel : trace.all("kernel")) kernels.push_back(kernel["args"]["correlation"]);
  std::sort(launches.begin(), launches.end());
  std::sort(kernels.begin(), kernels.end());
  EXPECT_EQ(launches, kernels);
  EXPECT_EQ(trace.all("user_annotation").size(), static_cast<std::size_t>(steps));
  EXPECT_EQ(kernels.size(), static_cast<std::size_t>(steps) * kKernels);
  EXPECT_EQ(trace.all("cpu_op").size(), static_cast<std::size_t>(steps) * kKernels);
}

TEST(Loss, AFullBufferEndsTheWindowBehindTheLastWholeStep) {
  for (const std::size_t blocks : {4U, 5U, 9U, 32U}) {
    const Folder folder;
    Options options = options_for(folder, 2, 1000);
    options.buffer_bytes = blocks << 14;
    Session session(options);
    for (int i = 0; i < 1002; ++i) make_step(i);
    const Report report = session.finish();
    ASSERT_FALSE(report.error) << report.error->text();
    EXPECT_GE(report.steps, static_cast<std::int64_t>(blocks) / 2) << report.summary;
    EXPECT_LT(report.steps, 100);
    EXPECT_GT(report.lost, 0);
    EXPECT_LE(report.lost, 3 * kKernels + 2) << "the cut step alone is lost";
    EXPECT_NE(report.summary.find("1000 steps were asked for: the buffer was full"),
              std::string::npos)
        << report.summary;
    EXPECT_NE(report.summary.find(std::to_string(report.lost) + " spans are left out"),
              std::string::npos)
        << report.summary;
    const Trace trace = parse(report.trace);
    EXPECT_EQ(trace.document["culprit_profile"]["lost_events"], report.lost);
    EXPECT_EQ(trace.document["culprit_profile"]["steps_asked"], 1000);
    expect_whole(trace, report.steps);
  }
}

TEST(Loss, ABufferThatHoldsNoStepIsAnError) {
  const Folder folder;
  Options options = options_for(folder, 1, 2);
  options.buffer_bytes = 1;  // one block, the least
  Session session(options);
  for (int i = 0; i < 3; ++i) {
    const Step step(Mark{.batch = 1});
    for (int k = 0; k < 2000; ++k) run_kernel("k");
  }
  const Report report = session.finish();
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->what.find("the buffer was full"), std::string::npos);
  EXPECT_NE(report.error->hint.find("buffer_bytes"), std::string::npos);
  EXPECT_GT(report.lost, 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(Loss, AWorkerWithoutSpaceBreaksTheStepThatLaunchedItsWork) {
  const Folder folder;
  Options options = options_for(folder, 0, 4);
  options.buffer_bytes = std::size_t{1} << 14;  // the host's block is the only one
  Session session(options);
  std::vector<Ticket> tickets;
  {
    const Step step("s0");
    run_kernel("k");
  }
  {
    const Step step("s1");
    const Launch launch;
    tickets.push_back(launch.ticket());
  }
  {
    const Step step("s2");
    run_kernel("k");
  }
  std::thread([&] { const Kernel kernel(tickets.front(), "no space"); }).join();
  const Report report = session.finish();
  EXPECT_EQ(report.steps, 1) << report.summary;
  EXPECT_EQ(parse(report.trace).all("kernel").size(), 1U);
  EXPECT_EQ(report.lost, 6) << "s1 and its launch, s2, its launch and kernel, the refused kernel";
}

TEST(Loss, WorkThatNeverRunsEndsTheTraceInFrontOfItsStep) {
  const Folder folder;
  Session session(options_for(folder, 0, 3));
  for (int i = 0; i < 3; ++i) {
    const Step step(Mark{.batch = 1});
    run_kernel("k");
    if (i == 1) const Launch launch;
  }
  const Report report = session.finish();
  EXPECT_EQ(report.steps, 1);
  EXPECT_NE(report.summary.find("3 steps were asked for: 1 launched works did not end"),
            std::string::npos)
      << report.summary;
}

TEST(Loss, LaunchesWhoseWorkHasNoSpanAreAnErrorThatSaysSo) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  {
    const Step step(Mark{.batch = 1});
    const Launch launch;
  }
  const Report report = session.finish();
  ASSERT_TRUE(report.error);
  EXPECT_NE(report.error->hint.find("ticket"), std::string::npos) << report.error->text();
}

TEST(Loss, ALaunchWithoutWorkIsNoLoss) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  {
    const Step step(Mark{.batch = 1});
    run_kernel("k");
    const Launch launch("cudaStreamWaitEvent", 0);
  }
  EXPECT_EQ(session.finish().steps, 1);
}

TEST(Loss, AStepThatIsOpenWhenTheSessionEndsIsLeftOut) {
  const Folder folder;
  Session session(options_for(folder, 0, 5));
  {
    const Step step(Mark{.batch = 1});
    run_kernel("k");
  }
  auto open = std::make_unique<Step>(Mark{.batch = 1});
  run_kernel("k");
  const Report report = session.finish();
  EXPECT_EQ(report.steps, 1);
  EXPECT_EQ(report.lost, 3);
  open.reset();  // behind the session: harmless
  Session next(options_for(folder, 0, 1));
  {
    const Step step(Mark{.batch = 1});
    run_kernel("k");
  }
  EXPECT_EQ(next.finish().steps, 1) << "the step that stayed open is forgotten";
}

}  // namespace
}  // namespace culprit::profile
