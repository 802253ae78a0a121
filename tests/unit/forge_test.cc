// What the forge promises of a trace: the case's figures, links that hold, spans that nest, bytes that repeat.
#include "forge/forge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "forge/emit.h"
#include "forge/options.h"

namespace culprit::forge {
namespace {

using Json = nlohmann::json;
using Args = std::vector<std::string_view>;

// The text of the trace that `culprit forge ARGS -o -` writes.
std::string forged(Args args) {
  args.insert(args.end(), {"-o", "-"});
  const Result<Options> options = parse(args);
  if (!options) {
    ADD_FAILURE() << options.error().what;
    return {};
  }
  const forge::Run run = options->recipe->make(options->choice);
  WriteOptions write = options->write;
  if (!options->steps_given) write.steps = run.default_steps;
  const Status fitted = fit(run, {options->events, options->size, options->steps_given}, write);
  StringSink sink;
  const Result<Written> written = write_trace(run, write, sink);
  if (!fitted || !written || written->bytes != sink.text().size()) ADD_FAILURE() << "not written";
  return sink.text();
}

Json forged_json(const Args& args) { return Json::parse(forged(args)); }

// Events in integer nanoseconds, as far as a double holds them: relative times only.
struct Event {
  std::string cat;
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Json args;
};

std::int64_t nanos(const Json& micros) { return std::llround(micros.get<double>() * 1000); }

std::vector<Event> events_of(const Json& trace, const std::set<std::string>& cats) {
  std::vector<Event> events;
  for (const Json& each : trace.is_array() ? trace : trace["traceEvents"]) {
    const std::string cat = each.value("cat", "");
    if (!cats.contains(cat) || each["ph"] != "X") continue;
    const std::int64_t begin = nanos(each["ts"]);
    events.push_back(
        {cat, each["name"], begin, begin + nanos(each["dur"]), each.value("args", Json::object())});
  }
  return events;
}

const std::set<std::string> kDevice = {"kernel", "gpu_memcpy", "gpu_memset"};
const std::set<std::string> kApi = {"cuda_runtime", "cuda_driver"};

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + what.size()))
    ++n;
  return n;
}

bool is_cast(const Event& event) {
  return event.args.contains("grid") && event.args["grid"][0] == 557'496;
}

TEST(Forge, FoundingCaseHasItsFigures) {
  const Json trace = forged_json({"glm5", "--steps", "4", "--no-stacks"});
  const std::vector<Event> kernels = events_of(trace, kDevice);
  std::int64_t casts = 0;
  std::int64_t cast_ns = 0;
  for (const Event& kernel : kernels) {
    if (!is_cast(kernel)) continue;
    ++casts;
    cast_ns += kernel.end - kernel.begin;
  }
  EXPECT_EQ(casts, 4 * 78);
  EXPECT_NEAR(static_cast<double>(cast_ns) / 4, 64.6e6, 0.7e6);
  std::vector<std::int64_t> starts;
  for (const Event& mark : events_of(trace, {"gpu_user_annotation"})) {
    if (mark.name == "step[DECODE bs=1]") starts.push_back(mark.begin);
  }
  ASSERT_EQ(starts.size(), 4U);
  EXPECT_NEAR(static_cast<double>(starts.back() - starts.front()) / 3, 93.2e6, 0.1e6);
  EXPECT_EQ(kernels.size() % 4, 0U);
}

TEST(Forge, CastIsUnderTheOperatorAndTheLineThatMadeIt) {
  const Json trace = forged_json({"glm5", "--steps", "1"});
  const std::vector<Event> kernels = events_of(trace, {"kernel"});
  const auto cast = std::find_if(kernels.begin(), kernels.end(), is_cast);
  ASSERT_NE(cast, kernels.end());
  Event launch;
  for (const Event& each : events_of(trace, kApi)) {
    if (each.args["correlation"] == cast->args["correlation"]) launch = each;
  }
  std::vector<std::string> ops;
  Event innermost;
  for (const Event& each : events_of(trace, {"cpu_op", "python_function"})) {
    if (each.begin > launch.begin || each.end < launch.end) continue;
    if (each.cat == "cpu_op") ops.push_back(each.name);
    if (each.cat == "python_function") innermost = each;
    if (each.name == "aten::copy_") {
      EXPECT_EQ(each.args["Input Dims"], Json::parse("[[495552,1,576],[495552,1,576],[]]"));
      EXPECT_EQ(each.args["Input type"],
                Json::parse(R"(["c10::BFloat16","c10::Float8_e4m3fn","Scalar"])"));
      EXPECT_EQ(each.args["External id"], cast->args["External id"]);
    }
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"aten::to", "aten::_to_copy", "aten::copy_"}));
  EXPECT_TRUE(innermost.name.starts_with("<built-in method to of Tensor object at 0x7f"));
  EXPECT_TRUE(
      innermost.args["CallFrom"].get<std::string>().ends_with("flashinfer_mla_backend.py:639"));
}

TEST(Forge, HealthyTwinReadsFp8AndCastsNothing) {
  const Json trace = forged_json({"glm5", "--steps", "1", "--healthy", "--no-stacks"});
  std::size_t attention = 0;
  for (const Event& kernel : events_of(trace, {"kernel"})) {
    EXPECT_FALSE(is_cast(kernel));
    if (kernel.name.find("BatchMLAPagedAttentionKernel") == std::string::npos) continue;
    ++attention;
    EXPECT_NE(kernel.name.find("__nv_fp8_e4m3"), std::string::npos);
  }
  EXPECT_EQ(attention, 78U);
}

TEST(Forge, EveryKernelHasItsLaunchAndItsOperator) {
  const Json trace = forged_json({"glm5", "--steps", "2", "--no-stacks"});
  std::map<std::int64_t, Event> launches;
  for (const Event& launch : events_of(trace, kApi)) {
    EXPECT_TRUE(launches.emplace(launch.args["correlation"].get<std::int64_t>(), launch).second);
  }
  std::set<std::int64_t> ops;
  for (const Event& op : events_of(trace, {"cpu_op", "user_annotation"})) {
    EXPECT_TRUE(ops.insert(op.args["External id"].get<std::int64_t>()).second);
  }
  std::int64_t free_from = 0;
  for (const Event& kernel : events_of(trace, kDevice)) {
    const auto launch = launches.find(kernel.args["correlation"].get<std::int64_t>());
    ASSERT_NE(launch, launches.end());
    EXPECT_GT(kernel.begin, launch->second.begin);
    EXPECT_GE(kernel.begin, free_from) << "one stream, one kernel at a time";
    free_from = kernel.end;
    EXPECT_EQ(kernel.args.contains("External id"), launch->second.args.contains("External id"));
    if (!kernel.args.contains("External id")) continue;
    EXPECT_TRUE(ops.contains(kernel.args["External id"].get<std::int64_t>()));
  }
}

TEST(Forge, HostSpansNest) {
  for (const Args& args :
       {Args{"glm5", "--steps", "1"},
        Args{"dense", "--steps", "2", "--marks", "profiler", "--events", "30000"},
        Args{"dense", "--steps", "3", "--partial-ends", "--graph"}}) {
    std::vector<Event> spans =
        events_of(forged_json(args),
                  {"cpu_op", "python_function", "user_annotation", "cuda_runtime", "cuda_driver"});
    std::stable_sort(spans.begin(), spans.end(), [](const Event& a, const Event& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<std::int64_t> open;
    for (const Event& span : spans) {
      while (!open.empty() && open.back() <= span.begin) open.pop_back();
      EXPECT_TRUE(open.empty() || span.end <= open.back()) << span.name;
      open.push_back(span.end);
    }
  }
}

TEST(Forge, PythonParentsEncloseTheirChildren) {
  std::map<std::int64_t, Event> frames;
  for (const Event& frame :
       events_of(forged_json({"dense", "--steps", "2"}), {"python_function"})) {
    if (!frame.args["Python parent id"].is_null()) {
      const auto parent = frames.find(frame.args["Python parent id"].get<std::int64_t>());
      ASSERT_NE(parent, frames.end()) << "a parent comes before its children";
      EXPECT_LE(parent->second.begin, frame.begin);
      EXPECT_GE(parent->second.end, frame.end);
    }
    frames.emplace(frame.args["Python id"].get<std::int64_t>(), frame);
  }
  EXPECT_GT(frames.size(), 1000U);
}

TEST(Forge, SameSeedSameBytes) {
  const std::string once = forged({"dense", "--steps", "2", "--seed", "7"});
  EXPECT_EQ(once, forged({"dense", "--steps", "2", "--seed", "7"}));
  EXPECT_NE(once, forged({"dense", "--steps", "2", "--seed", "8"}));
}

TEST(Forge, PresetsHaveTheirProportionsAtAnySize) {
  const std::string stacks =
      forged({"glm5", "--preset", "stacks-pretty", "--steps", "1", "--size", "30MB"});
  EXPECT_NEAR(static_cast<double>(stacks.size()), 30e6, 3e6);
  EXPECT_GE(count(stacks, "\"cat\": \"python_function\""), count(stacks, "\"ph\":") * 8 / 10);
  EXPECT_GT(count(stacks, "\n    \"ph\": \"X\", \"cat\": \"kernel\""), 2600U);
  const std::string ops = forged({"--preset=ops-lines", "glm5", "--steps", "1", "--size", "23MB"});
  EXPECT_NEAR(static_cast<double>(ops.size()), 23e6, 2.3e6);
  EXPECT_EQ(count(ops, "python_function"), 0U);
  EXPECT_GE(count(ops, "\"cat\": \"cpu_op\""), count(ops, "\"ph\":") * 7 / 10);
  EXPECT_GT(count(ops, "\n{\"ph\": \"X\", \"cat\": \"kernel\""), 2600U);
}

TEST(Forge, ARunThatIsTooLargeLosesStepsOnlyIfNoneWereGiven) {
  const std::string text = forged({"dense", "--size", "6MB"});
  EXPECT_NEAR(static_cast<double>(text.size()), 6e6, 0.6e6);
  EXPECT_LT(count(text, "step[DECODE"), 2U * 6);
  const Result<Options> options = parse(Args{"dense", "--size", "6MB", "--steps", "30", "-o", "x"});
  ASSERT_TRUE(options);
  WriteOptions write = options->write;
  EXPECT_FALSE(fit(options->recipe->make({}), {0, options->size, true}, write));
}

TEST(Forge, LayoutsHoldTheSameEvents) {
  const std::string pretty = forged({"dense", "--steps", "1"});
  const Json events = Json::parse(pretty)["traceEvents"];
  EXPECT_EQ(Json::parse(forged({"dense", "--steps", "1", "--layout", "lines"}))["traceEvents"],
            events);
  EXPECT_EQ(Json::parse(forged({"dense", "--steps", "1", "--header", "last"}))["traceEvents"],
            events);
  const std::string array = forged({"dense", "--steps", "1", "--layout", "array"});
  EXPECT_EQ(Json::parse(array), events);
  EXPECT_EQ(count(array, "\n"), events.size() + 2);
  EXPECT_EQ(events.back()["name"], "Record Window End");
}

TEST(Forge, ErasDifferInTheirTimes) {
  const std::string micros = forged({"dense", "--steps", "1", "--era", "absolute-us"});
  EXPECT_EQ(micros.find("baseTimeNanoseconds"), std::string::npos);
  EXPECT_EQ(micros.find("Record function id"), std::string::npos);
  EXPECT_TRUE(Json::parse(micros)["traceEvents"][0]["ts"].is_number_integer());
  EXPECT_NE(micros.find("\"ts\": 16941282014"), std::string::npos);
  const std::string absolute = forged({"dense", "--steps", "1", "--era", "absolute-ns"});
  EXPECT_EQ(absolute.find("baseTimeNanoseconds"), std::string::npos);
  EXPECT_NE(absolute.find("\"ts\": 1712195495"), std::string::npos);
  const Json relative = Json::parse(forged({"dense", "--steps", "1"}));
  EXPECT_EQ(relative["baseTimeNanoseconds"].get<std::int64_t>() % 7'889'238'000'000'000, 0);
}

TEST(Forge, GraphIsOneLaunchOfManyKernels) {
  const Json trace = forged_json({"dense", "--steps", "3", "--graph"});
  std::vector<std::int64_t> replays;
  for (const Event& launch : events_of(trace, {"cuda_runtime"})) {
    if (launch.name == "cudaGraphLaunch")
      replays.push_back(launch.args["correlation"].get<std::int64_t>());
  }
  ASSERT_EQ(replays.size(), 3U);
  std::map<std::int64_t, int> kernels;
  for (const Event& kernel : events_of(trace, {"kernel"})) {
    if (!kernel.args.contains("graph node id")) continue;
    ++kernels[kernel.args["correlation"].get<std::int64_t>()];
    EXPECT_FALSE(kernel.args.contains("External id"));
  }
  EXPECT_EQ(kernels.size(), 3U);
  for (const std::int64_t replay : replays) EXPECT_GT(kernels[replay], 300);
}

TEST(Forge, HostBoundRunLeavesTheDeviceIdle) {
  const auto busy = [](const Args& args) {
    const std::vector<Event> kernels = events_of(forged_json(args), kDevice);
    std::int64_t sum = 0;
    for (const Event& kernel : kernels) sum += kernel.end - kernel.begin;
    return static_cast<double>(sum) /
           static_cast<double>(kernels.back().end - kernels.front().begin);
  };
  const double slow = busy({"host-bound", "--steps", "3", "--no-stacks"});
  EXPECT_GT(slow, 0.15);
  EXPECT_LT(slow, 0.30);
  EXPECT_GT(busy({"host-bound", "--steps", "3", "--no-stacks", "--healthy"}), 0.9);
}

TEST(Forge, RanksWaitForTheSlowOne) {
  const auto all_reduce = [](std::string_view rank) {
    std::int64_t sum = 0;
    for (const Event& kernel : events_of(forged_json({"glm5", "--steps", "1", "--no-stacks",
                                                      "--fault", "straggler", "--rank", rank}),
                                         {"kernel"})) {
      if (kernel.name.starts_with("ncclDevKernel_AllReduce")) sum += kernel.end - kernel.begin;
    }
    return sum;
  };
  EXPECT_GT(all_reduce("0"), all_reduce("7") + 2'000'000);
}

TEST(Forge, MarksAreTheEngines) {
  EXPECT_EQ(count(forged({"prefill-mixed", "--steps", "12", "--no-stacks"}),
                  "step[EXTEND bs=1 toks=16384]"),
            2U);
  EXPECT_EQ(count(forged({"dense", "--steps", "2", "--marks", "profiler"}), "\"ProfilerStep#21\""),
            2U);
  EXPECT_EQ(count(forged({"dense", "--steps", "2", "--marks", "vllm"}),
                  "execute_context_0(0)_generation_16(16)"),
            4U);
  EXPECT_EQ(count(forged({"dense", "--steps", "2", "--marks", "none"}), "user_annotation"), 0U);
}

TEST(Forge, UnknownWordsNameTheNearMatch) {
  const auto hint = [](const Args& args) {
    const Result<Options> options = parse(args);
    return options ? std::string("accepted") : options.error().hint;
  };
  EXPECT_EQ(hint({"glm", "-o", "x"}), "did you mean: glm5?");
  EXPECT_EQ(hint({"glm5", "--stpes", "3", "-o", "x"}), "did you mean: --steps?");
  EXPECT_EQ(hint({"glm5", "--fault", "pool", "-o", "x"}), "did you mean: whole-pool-cast?");
  EXPECT_EQ(hint({"glm5", "--layout", "line", "-o", "x"}), "did you mean: lines?");
  EXPECT_FALSE(parse(Args{"glm5"}));
  EXPECT_FALSE(parse(Args{"glm5", "-o", "x", "--world", "7"}));
  EXPECT_FALSE(parse(Args{"glm5", "-o", "x", "--steps", "0"}));
  EXPECT_FALSE(parse(Args{"glm5", "-o", "x", "--size", "5mb"}));
}

TEST(Forge, PlantedRecipesDrawTheirDeployment) {
  const auto args = [](std::string_view draw, std::string_view last) {
    return Args{"layout-copy", "--steps", "1", "--no-stacks", "--draw", draw, last};
  };
  const std::string planted = forged(args("5", "--shapes"));
  EXPECT_EQ(planted, forged(args("5", "--shapes")));
  EXPECT_NE(planted, forged(args("6", "--shapes")));
  EXPECT_GT(count(planted, "aten::flatten"), 0U);
  EXPECT_EQ(count(forged(args("5", "--healthy")), "aten::flatten"), 0U);
}

TEST(Forge, ConfigsAreJson) {
  for (const Recipe& recipe : recipes()) {
    Choice choice;
    choice.recipe = recipe.name;
    const forge::Run run = recipe.make(choice);
    EXPECT_TRUE(Json::parse(run.configs.config).contains("num_hidden_layers")) << recipe.name;
    EXPECT_TRUE(Json::parse(run.configs.server_info).contains("max_total_num_tokens"))
        << recipe.name;
  }
  const Json quantization = Json::parse(recipes().front().make({}).configs.quantization);
  EXPECT_EQ(quantization["quantization"]["kv_cache_quant_algo"], "FP8");
}

}  // namespace
}  // namespace culprit::forge
