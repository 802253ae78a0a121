// What stands in the trace: every field that readers look for, and every link.
#include <array>
#include <chrono>
#include <map>
#include <thread>

#include "unit/profile_trace.h"

namespace culprit::profile {
namespace {

template <class Steps>
Trace record(const Folder& folder, Options options, Steps steps) {
  options.output = folder.file("t.json.gz");
  Session session(options);
  EXPECT_TRUE(session.on());
  steps();
  const Report report = session.finish();
  EXPECT_FALSE(report.error) << report.error->text();
  Trace trace = parse(report.trace);
  EXPECT_EQ(static_cast<std::int64_t>(trace.document["traceEvents"].size()), report.events);
  return trace;
}

// Of a time in the file: microseconds since the quarter's begin, which a double holds within 1 ns.
std::int64_t ns(const Json& event, const char* key) {
  const double micros = event[key].get<double>();
  return static_cast<std::int64_t>(micros * 1000 + 0.5);
}
std::int64_t begin_of(const Json& event) { return ns(event, "ts"); }
std::int64_t end_of(const Json& event) { return ns(event, "ts") + ns(event, "dur"); }

bool holds(const Json& outer, const Json& inner) {
  constexpr std::int64_t kRounding = 2;  // of `ns`
  return outer["tid"] == inner["tid"] && begin_of(outer) <= begin_of(inner) + kRounding &&
         end_of(inner) <= end_of(outer) + kRounding;
}

TEST(Trace, AnOperatorHasShapesTypesAndItsLine) {
  const Folder folder;
  std::uint32_t line = 0;
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{.batch = 8});
    line = __LINE__ + 1;
    const Op op("aten::mm", kBf16(8, 6144), kE4m3(std::size_t{6144}, 576), kInt64());
    run_kernel("k");
  });
  const Json op = trace.one("aten::mm");
  EXPECT_EQ(op["cat"], "cpu_op");
  EXPECT_EQ(op["args"]["Input Dims"], Json::parse("[[8, 6144], [6144, 576], []]"));
  EXPECT_EQ(op["args"]["Input type"],
            Json::parse(R"(["c10::BFloat16", "c10::Float8_e4m3fn", "long int"])"));
  const std::vector<Json> frames = trace.all("python_function");
  ASSERT_EQ(frames.size(), 2U);
  const std::string file = __FILE__, number = std::to_string(line);
  EXPECT_EQ(frames[0]["name"], file + "(" + number + "): operator()");
  EXPECT_EQ(frames[1]["name"], "<built-in function aten::mm>");
  EXPECT_EQ(frames[1]["args"]["CallFrom"], file + ":" + number);
  EXPECT_EQ(frames[1]["args"]["Python parent id"], frames[0]["args"]["Python id"]);
  EXPECT_TRUE(frames[0]["args"]["Python parent id"].is_null());
  EXPECT_TRUE(holds(frames[0], trace.one("cudaLaunchKernel")));
}

TEST(Trace, AnOperatorWithAGivenPlaceOrNone) {
  const Folder folder;
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{});
    { const Op op(Call("given", {"model.cu", "forward", 42})); }
    { const Op op(Call("none", Location{})); }
  });
  ASSERT_EQ(trace.all("python_function").size(), 2U);
  EXPECT_EQ(trace.all("python_function")[0]["name"], "model.cu(42): forward");
}

TEST(Trace, AKernelIsLinkedToItsLaunchAndOperatorAcrossThreads) {
  const Folder folder;
  const Work work{
      .stream = 7, .device = 1, .grid = {64, 2, 1}, .block = {128, 1, 1}, .bytes = 4096};
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{.batch = 1});
    const Op outer("outer");
    const Op inner("inner");
    Ticket ticket;
    {
      const Launch launch;
      ticket = launch.ticket();
    }
    std::thread([&] { const Kernel kernel(ticket, "k", work); }).join();
    const Wait wait(kWaitForDevice);
  });
  const Json kernel = trace.one("k"), launch = trace.one("cudaLaunchKernel"),
             inner = trace.one("inner"), outer = trace.one("outer");
  EXPECT_EQ(kernel["cat"], "kernel");
  EXPECT_EQ(launch["cat"], "cuda_runtime");
  EXPECT_EQ(kernel["args"]["correlation"], launch["args"]["correlation"]);
  EXPECT_EQ(kernel["args"]["External id"], inner["args"]["External id"]);
  EXPECT_EQ(launch["args"]["External id"], inner["args"]["External id"]);
  EXPECT_NE(inner["args"]["External id"], outer["args"]["External id"]);
  EXPECT_EQ(kernel["args"]["grid"], Json({64, 2, 1}));
  EXPECT_EQ(kernel["args"]["block"], Json({128, 1, 1}));
  EXPECT_EQ(kernel["args"]["bytes"], 4096);
  EXPECT_EQ(kernel["pid"], 1);
  EXPECT_EQ(kernel["tid"], 7);
  EXPECT_EQ(kernel["args"]["device"], 1);
  EXPECT_EQ(kernel["args"]["stream"], 7);
  EXPECT_EQ(launch["pid"], getpid());
  EXPECT_TRUE(holds(outer, inner));
  EXPECT_TRUE(holds(inner, launch));
  std::vector<Json> frames = trace.all("python_function");  // of outer, then of inner
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[1]["name"], "<built-in function outer>");
  EXPECT_EQ(frames[2]["args"]["Python parent id"], frames[1]["args"]["Python id"]);
  EXPECT_GE(begin_of(kernel), begin_of(launch));
  EXPECT_EQ(trace.one("cudaDeviceSynchronize")["cat"], "cuda_runtime");
}

TEST(Trace, AGraphLaunchHasManyKernelsOfOneCorrelation) {
  const Folder folder;
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{.batch = 1});
    const Launch launch(kLaunchGraph, 3);
    for (int i = 0; i < 3; ++i) const Kernel kernel(launch.ticket(), "piece");
  });
  const Json launch = trace.one("cudaGraphLaunch");
  ASSERT_EQ(trace.all("kernel").size(), 3U);
  for (const Json& kernel : trace.all("kernel"))
    EXPECT_EQ(kernel["args"]["correlation"], launch["args"]["correlation"]);
}

TEST(Trace, CopiesAndFillsHaveBytes) {
  const Folder folder;
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{.batch = 1});
    {
      const Launch launch(kCopyAsync);
      const Copy copy(launch.ticket(), kCopyIn, {.stream = 2, .bytes = 1 << 20});
    }
    const Launch launch(kFillAsync);
    const Copy fill(launch.ticket(), kFill, {.stream = 2, .bytes = 512});
  });
  ASSERT_EQ(trace.all("gpu_memcpy").size(), 1U);
  EXPECT_EQ(trace.all("gpu_memcpy")[0]["args"]["bytes"], 1 << 20);
  EXPECT_EQ(trace.all("gpu_memcpy")[0]["name"], "Memcpy HtoD (Pinned -> Device)");
  ASSERT_EQ(trace.all("gpu_memset").size(), 1U);
  EXPECT_EQ(trace.all("gpu_memset")[0]["args"]["bytes"], 512);
}

TEST(Trace, ACollectiveSaysWhatItSends) {
  const Folder folder;
  const Message message{.collective = "allreduce",
                        .dtype = "BFloat16",
                        .in_elements = 49'152,
                        .out_elements = 49'152,
                        .ranks = 4,
                        .group = "tp",
                        .members = "[0, 1, 2, 3]"};
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{.batch = 8});
    const Launch launch;
    const Collective collective(launch.ticket(), "all_reduce_ring", message, {.stream = 1});
  });
  const Json args = trace.one("all_reduce_ring")["args"];
  EXPECT_EQ(trace.one("all_reduce_ring")["cat"], "kernel");
  EXPECT_EQ(args["Collective name"], "allreduce");
  EXPECT_EQ(args["dtype"], "BFloat16");
  EXPECT_EQ(args["In msg nelems"], 49'152);
  EXPECT_EQ(args["Out msg nelems"], 49'152);
  EXPECT_EQ(args["Group size"], 4);
  EXPECT_EQ(args["Process Group Name"], "tp");
  EXPECT_EQ(args["Process Group Ranks"], "[0, 1, 2, 3]");
}

TEST(Trace, AStepIsMarkedOnTheHostAndOnEachStreamItUses) {
  const Folder folder;
  const Trace trace = record(folder, options_for(folder, 0, 2), [&] {
    for (int i = 0; i < 2; ++i) {
      const Step step({.batch = 8, .tokens = 16, .kind = "TARGET_VERIFY"});
      run_kernel("a", {.stream = 1});
      run_kernel("b", {.stream = 2});
      run_kernel("a", {.stream = 1});
    }
  });
  const std::string name = "step[TARGET_VERIFY bs=8 toks=16]";
  ASSERT_EQ(trace.all("user_annotation").size(), 2U);
  EXPECT_EQ(trace.all("user_annotation")[0]["name"], name);
  const std::vector<Json> marks = trace.all("gpu_user_annotation");
  ASSERT_EQ(marks.size(), 4U);
  std::map<int, int> kernels;  // of stream 1, by mark
  for (std::size_t m = 0; m < marks.size(); ++m) {
    EXPECT_EQ(marks[m]["name"], name);
    for (const Json& kernel : trace.all("kernel"))
      kernels[static_cast<int>(m)] += holds(marks[m], kernel) ? 1 : 0;
  }
  EXPECT_EQ(kernels, (std::map<int, int>{{0, 2}, {1, 1}, {2, 2}, {3, 1}}));
}

TEST(Trace, TheHeaderDescribesDevicesAndTheClock) {
  const Folder folder;
  Options options = options_for(folder, 0, 1);
  options.devices = {
      {.id = 0, .name = "CPU \"A\"", .bytes_per_s = 1.5e11, .cores = 16, .memory = 1 << 30},
      {.id = 1}};
  const auto before = std::chrono::system_clock::now();
  const Trace trace = record(folder, options, [&] {
    const Step step(Mark{.batch = 1});
    run_kernel("k");
  });
  const Json& head = trace.document;
  EXPECT_EQ(head["schemaVersion"], 1);
  EXPECT_EQ(head["displayTimeUnit"], "ms");
  ASSERT_EQ(head["deviceProperties"].size(), 2U);
  EXPECT_EQ(head["deviceProperties"][0]["name"], "CPU \"A\"");
  EXPECT_EQ(head["deviceProperties"][0]["memoryBandwidth"], 150'000'000'000);
  EXPECT_EQ(head["deviceProperties"][0]["numSms"], 16);
  EXPECT_EQ(head["deviceProperties"][0]["totalGlobalMem"], 1 << 30);
  EXPECT_FALSE(head["deviceProperties"][1].contains("memoryBandwidth"));
  EXPECT_FALSE(head.contains("distributedInfo"));
  const auto base = head["baseTimeNanoseconds"].get<std::int64_t>();
  EXPECT_EQ(base % 7'889'238'000'000'000, 0);
  const std::int64_t epoch = base + begin_of(trace.one("k"));
  const auto since = std::chrono::nanoseconds(epoch) - before.time_since_epoch();
  EXPECT_LT(std::chrono::abs(since), std::chrono::minutes(1));
  EXPECT_EQ(head["traceEvents"].back()["name"], "Record Window End");
  EXPECT_EQ(head["traceEvents"].back()["ph"], "i");
}

TEST(Trace, ThreadsAndStreamsHaveNames) {
  const Folder folder;
  const Trace trace = record(folder, options_for(folder, 1, 1), [&] {
    std::thread([] { name_thread("never records"); }).join();
    name_thread("decode");
    for (int i = 0; i < 2; ++i) {
      const Step step(Mark{.batch = 1});
      run_kernel("k", {.stream = 5});
    }
  });
  name_thread("");
  std::vector<std::string> names;
  for (const Json& event : trace.document["traceEvents"])
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  ASSERT_EQ(names.size(), 3U);
  EXPECT_NE(names[0].find("(never records)"), std::string::npos);
  EXPECT_EQ(names[1], "thread " + std::to_string(gettid()) + " (decode)");
  EXPECT_EQ(names[2], "stream 5");
}

TEST(Trace, AnyBytesInNamesAreStrictJson) {
  const Folder folder;
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  const std::array<std::string, 4> nasty{
      bytes, "\xed\xa0\x80 surrogate", "cut \xe2\x82",
      "\xf4\x90\x80\x80 beyond, \xc0\xaf overlong, \xe2\x82\xac"};
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(intern("step \"quoted\" \\ \n"));
    for (const std::string& name : nasty) {
      const Op op(intern(name));
      run_kernel(intern(name));
    }
  });
  EXPECT_EQ(trace.all("user_annotation")[0]["name"], "step \"quoted\" \\ \n");
  ASSERT_EQ(trace.all("kernel").size(), nasty.size());
  const std::string first = trace.all("kernel")[0]["name"];
  EXPECT_EQ(first.substr(0, 128), bytes.substr(0, 128));
  EXPECT_EQ(trace.all("kernel")[3]["name"].get<std::string>().substr(12, 6), " beyon");
}

TEST(Trace, AnOperatorThatIsStillOpenEndsWithTheWindow) {
  const Folder folder;
  Session session(options_for(folder, 0, 1));
  auto step = std::make_unique<Step>(Name("s0"));
  auto open = std::make_unique<Op>(Name("open"));
  run_kernel("k");
  step.reset();
  const Report report = session.finish();
  const Trace trace = parse(report.trace);
  EXPECT_EQ(trace.one("open")["args"]["finished"], false);
  EXPECT_GE(end_of(trace.one("open")) + 2, end_of(trace.all("user_annotation").front()));
  open.reset();  // behind the session: harmless
}

TEST(Trace, InputsOfAnyNumberAndRank) {
  const Folder folder;
  const std::vector<std::int64_t> shape{1, 2, 3, 4, 5, 6, 7};
  const std::vector<Tensor> some(5, Tensor{kFloat.name, shape}), many(500, some.front());
  const Trace trace = record(folder, options_for(folder, 0, 1), [&] {
    const Step step(Mark{});
    { const Op op("some", some); }
    { const Op op("none", std::vector<Tensor>{}); }
    { const Op op("too many", many); }
    const Op op("behind", kFloat(1));
  });
  const Json kept = trace.one("some")["args"]["Input Dims"];
  ASSERT_EQ(kept.size(), 5U);
  for (const Json& dims : kept) EXPECT_EQ(dims, Json(shape));
  EXPECT_FALSE(trace.one("none")["args"].contains("Input Dims"));
  EXPECT_FALSE(trace.one("too many")["args"].contains("Input Dims"));
  EXPECT_EQ(trace.one("behind")["args"]["Input Dims"], Json::parse("[[1]]"));
}

}  // namespace
}  // namespace culprit::profile
