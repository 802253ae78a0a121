// The reader from the outside: text in, tables and notes out. Each fault stands beside the same text without it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "ingest/ingest.h"
#include "temp_file.h"

namespace culprit::ingest {
namespace {

using test::TempFile;

Result<std::unique_ptr<store::Trace>> load_text(std::string_view text, Options options = {}) {
  const TempFile file(text);
  return load(file.path(), options);
}

std::unique_ptr<store::Trace> loaded(std::string_view text, Options options = {}) {
  auto result = load_text(text, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().what);
  return result.ok() ? std::move(*result) : std::make_unique<store::Trace>();
}

std::string kernel(int i, const std::string& ts, const std::string& dur,
                   const std::string& extra = "") {
  return R"({"ph": "X", "cat": "kernel", "name": "k)" + std::to_string(i) +
         R"(", "pid": 0, "tid": 7, "ts": )" + ts + R"(, "dur": )" + dur +
         R"(, "args": {"device": 0, "stream": 7, "correlation": )" + std::to_string(i) +
         R"(, "grid": [557496, 1, 1], "block": [128, 1, 1])" + extra + "}}";
}

std::string document(const std::string& events) {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}], "traceEvents": [)" +
         events + "]}";
}

const store::Note* note(const store::Trace& trace, std::string_view code) {
  return trace.notes.find(code);
}

TEST(Load, KernelColumns) {
  const auto trace = loaded(document(kernel(1, "10.5", "2.250") + ",\n" + kernel(2, "13", "1")));
  ASSERT_EQ(trace->device.size(), 2U);
  EXPECT_EQ(trace->device.begin[0], 10'500);
  EXPECT_EQ(trace->device.dur[0], 2'250);
  EXPECT_EQ(trace->strings[trace->device.name[1]], "k2");
  EXPECT_EQ(trace->device.grid[0], (store::Dim3{557496, 1, 1}));
  EXPECT_EQ(trace->device.block[0], (store::Dim3{128, 1, 1}));
  EXPECT_EQ(trace->device.stream[0], 7);
  EXPECT_EQ(trace->device.correlation[1], 2);
  EXPECT_EQ(trace->info.events, 2);
  ASSERT_EQ(trace->info.devices.size(), 1U);
  EXPECT_EQ(trace->info.devices[0].sms, 132);
  EXPECT_TRUE(trace->notes.all().empty());
}

TEST(Load, KeysInAnyOrderHeaderLastOrNone) {
  const std::string event =
      R"({"args": {"correlation": 5}, "dur": 2, "ts": 1, "tid": "stream 7", "pid": "0", "name": "k", "cat": "Kernel", "ph": "X"})";
  const std::string forms[] = {
      "[" + event + "]",
      "\n [\n" + event + "\n]\n",
      R"({"traceEvents": [)" + event +
          R"(], "schemaVersion": 1, "baseTimeNanoseconds": 1751410836000000000})",
      R"({"metadata": {"x": [{"name": "not an event", "ts": 1}, {"name": "nor this"}]}, "traceEvents": [)" +
          event + "]}",
  };
  for (const std::string& text : forms) {
    const auto trace = loaded(text);
    ASSERT_EQ(trace->device.size(), 1U) << text;
    EXPECT_EQ(trace->device.begin[0], 1'000) << text;
    EXPECT_EQ(trace->device.stream[0], 7) << text;
    EXPECT_EQ(trace->device.correlation[0], 5) << text;
    EXPECT_TRUE(trace->notes.all().empty()) << text;
  }
  EXPECT_EQ(loaded(forms[2])->info.base, 1751410836000000000);
}

TEST(Load, TimesAsStringsAndLargeIds) {
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": "1700000000000123.457", "dur": "1.000", "args": {"correlation": 9007199254740992}},)"
      R"({"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 1700000000000124.457, "dur": 1.000, "args": {"correlation": 9007199254740993}})"));
  ASSERT_EQ(trace->device.size(), 2U);
  EXPECT_EQ(trace->device.begin[1] - trace->device.begin[0] - trace->device.dur[0], 0);
  EXPECT_NE(trace->device.correlation[0], trace->device.correlation[1]);
}

TEST(Load, BareInfIsOneAbsentValueEach) {
  const std::string clean = kernel(1, "1", "1") + "," + kernel(2, "3", "1");
  const auto copy = [](const std::string& args) {
    return R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "pid": 0, "tid": 7, "ts": 9, "dur": 0, "args": {)" +
           args + "}},";
  };
  const std::string words = copy(R"("bytes": 4, "memory bandwidth": inf)") +
                            copy(R"("memory bandwidth": NaN, "bytes": 4)") +
                            copy(R"("bytes": 4, "memory bandwidth": -Infinity)");
  const auto trace = loaded(document(words + clean));
  ASSERT_EQ(trace->device.size(), 5U);
  EXPECT_EQ(trace->device.bytes[1], 4);
  ASSERT_NE(note(*trace, "bad-number"), nullptr);
  EXPECT_EQ(note(*trace, "bad-number")->count, 3);
  EXPECT_EQ(note(*trace, "bad-number")->event, 0);
  EXPECT_EQ(note(*loaded(document(clean)), "bad-number"), nullptr);
}

TEST(Load, WindowsPathsKeepTheirBackslashes) {
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "python_function", "name": "torch\nn\modules\linear.py(125): forward", "pid": 1, "tid": 1, "ts": 1, "dur": 1},)"
      R"({"ph": "X", "cat": "python_function", "name": "C:\Users\tom\u12.py(3): g", "pid": 1, "tid": 1, "ts": 1, "dur": 1})"));
  ASSERT_EQ(trace->frames.size(), 2U);
  EXPECT_EQ(trace->strings[trace->frames.name[0]], R"(torch\nn\modules\linear.py(125): forward)");
  EXPECT_EQ(trace->strings[trace->frames.name[1]], R"(C:\Users\tom\u12.py(3): g)");
  EXPECT_EQ(note(*trace, "bad-string")->count, 2);
}

TEST(Load, UnescapedQuotesCostNothing) {
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "python_function", "name": "f {"device": "cpu"} at x.py(3): g", "pid": 1, "tid": 1, "ts": 1, "dur": 1},)" +
      kernel(1, "1", "1")));
  ASSERT_EQ(trace->frames.size(), 1U);
  EXPECT_EQ(trace->strings[trace->frames.name[0]], R"(f {"device": "cpu"} at x.py(3): g)");
  EXPECT_EQ(trace->device.size(), 1U);
  EXPECT_EQ(note(*trace, "bad-string")->count, 1);
}

TEST(Load, ControlCharactersAndInvalidUtf8BecomeReplacementCharacters) {
  const auto trace =
      loaded(document("{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\tb\", \"pid\": 1, "
                      "\"tid\": 1, \"ts\": 1, \"dur\": 1},"
                      "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"c\xff\xfe\x01\", \"pid\": "
                      "1, \"tid\": 1, \"ts\": 1, \"dur\": 1},"
                      "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"clean\", \"pid\": 1, "
                      "\"tid\": 1, \"ts\": 1, \"dur\": 1}"));
  ASSERT_EQ(trace->ops.size(), 3U);
  EXPECT_EQ(trace->strings[trace->ops.name[0]],
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(trace->strings[trace->ops.name[1]], "c\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(trace->strings[trace->ops.name[2]], "clean");
  EXPECT_GE(note(*trace, "bad-string")->count, 2);
}

TEST(Load, NegativeDurationsCountAsNothing) {
  const auto trace =
      loaded(document(kernel(1, "5", "-1750000000000000") + "," + kernel(2, "6", "20")));
  ASSERT_EQ(trace->device.size(), 2U);
  EXPECT_EQ(trace->device.dur[0], 0);
  EXPECT_EQ(note(*trace, "negative-duration")->count, 1);
}

TEST(Load, AMalformedEventCostsItself) {
  const std::string bad[] = {
      R"({"ph": "X", "cat": "kernel", "name": "x" "ts": 1})",
      R"({"ph": "X", ])",
      R"({"ph" "X"})",
      "garbage",
      R"({"ph": "X", "cat": "kernel", "name": "no time", "pid": 0, "tid": 7, "args": {}})",
      R"({"ph": "X", "cat": "kernel", "args": {"grid": [1, 2}, "name": "x"})"};
  for (const std::string& event : bad) {
    const auto trace =
        loaded(document(kernel(1, "1", "1") + "," + event + "," + kernel(2, "2", "1")));
    EXPECT_EQ(trace->device.size(), 2U) << event;
    ASSERT_NE(note(*trace, "bad-event"), nullptr) << event;
    EXPECT_EQ(note(*trace, "bad-event")->count, 1) << event;
    EXPECT_EQ(note(*trace, "bad-event")->event, 1) << event;
  }
}

TEST(Load, TruncationKeepsWhatIsThere) {
  const std::string whole =
      document(kernel(1, "1", "1") + "," + kernel(2, "2", "1") + "," + kernel(3, "3", "1"));
  const std::size_t begin = whole.find("k1");
  for (std::size_t cut = begin; cut < whole.size() - 2; ++cut) {
    const auto trace = loaded(whole.substr(0, cut));
    ASSERT_NE(note(*trace, "truncated"), nullptr) << cut;
    EXPECT_LE(trace->device.size(), 3U);
    EXPECT_EQ(note(*trace, "bad-event"), nullptr) << cut;
  }
  EXPECT_EQ(loaded(whole)->device.size(), 3U);
}

TEST(Load, RefusedByName) {
  const struct {
    std::string text;
    const char* says;
    Error::Code code;
  } cases[] = {
      {"", "empty", Error::Code::kBadInput},
      {"PK\x03\x04 zip", "zip", Error::Code::kUnsupported},
      {"SQLite format 3 and more", "SQLite", Error::Code::kUnsupported},
      {R"({"schema": "1.0.1", "nodes": [{"id": 1}]})", "execution trace",
       Error::Code::kUnsupported},
      {R"([{"name": "aten::mm", "ph": "X", "ts": 1, "dur": 2, "tid": 1, "pid": "CPU functions", "args": {}}])",
       "before Kineto", Error::Code::kUnsupported},
      {R"({"model": 1})", "not a trace", Error::Code::kBadInput},
      {"hello", "not a trace", Error::Code::kBadInput},
      {"\xff\xfe{", "UTF-16", Error::Code::kUnsupported},
  };
  for (const auto& c : cases) {
    const auto result = load_text(c.text);
    ASSERT_FALSE(result.ok()) << c.says;
    EXPECT_NE(result.error().what.find(c.says), std::string::npos) << result.error().what;
    EXPECT_EQ(result.error().code, c.code) << c.says;
    EXPECT_FALSE(result.error().hint.empty()) << c.says;
    EXPECT_FALSE(result.error().where.empty()) << c.says;
  }
  EXPECT_EQ(load("/no/such/file.json", {}).error().code, Error::Code::kCannotRead);
}

// Everything that the answer could depend on, as text.
std::string fingerprint(const store::Trace& trace) {
  std::string out = std::to_string(trace.info.events) + "\n";
  const auto line = [&](auto... parts) { ((out += std::to_string(parts) + " "), ...); };
  for (std::size_t i = 0; i < trace.device.size(); ++i) {
    line(trace.device.begin[i], trace.device.dur[i], trace.device.correlation[i],
         trace.device.grid[i][0]);
    out += std::string(trace.strings[trace.device.name[i]]) + "\n";
  }
  for (std::size_t i = 0; i < trace.frames.size(); ++i) {
    line(trace.frames.begin[i], trace.frames.dur[i]);
    out += std::string(trace.strings[trace.frames.name[i]]) + " " +
           std::string(trace.strings[trace.frames.call_from[i]]) + "\n";
  }
  for (const store::Note& n : trace.notes.all()) {
    out += n.code + " " + std::to_string(n.count) + " " + std::to_string(n.byte.value_or(-1)) +
           " " + std::to_string(n.event.value_or(-1)) + "\n";
  }
  return out;
}

std::string long_document() {
  std::string events;
  for (int i = 0; i < 400; ++i) {
    if (i > 0) events += ",\n  ";
    events += kernel(i, std::to_string(i * 10), "3.125");
    events += R"(, {
    "ph": "X", "cat": "python_function", "name": "file.py()" +
              std::to_string(i % 7) + R"(): f", "pid": 1, "tid": 1,
    "ts": )" + std::to_string(i) +
              R"(.500, "dur": 1.000,
    "args": {
      "Python id": 3, "CallFrom": "x.py:)" +
              std::to_string(i % 5) + R"(", "Ev Idx": )" + std::to_string(i) + R"(
    }
  })";
    if (i % 50 == 7)
      events += R"(, {"ph": "X", "cat": "kernel", "name": "broken" "ts": 1, "dur": 2})";
    if (i % 50 == 9)
      events += R"(, {"ph": "i", "name": "an event longer than a block: )" +
                std::string(3000, 'x') + R"("})";
    if (i % 50 == 11)
      events +=
          R"(, {"ph": "X", "cat": "cpu_op", "name": "like, {\"ph\": \"X\"", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"x": [{"name": "nested", "ts": 1}, {"ph": "no"}]}})";
  }
  return document(events);
}

TEST(Load, SameAtAnyThreadCountAndBlockSize) {
  const TempFile file(long_document());
  const auto whole = load(file.path(), {.threads = 1});
  ASSERT_TRUE(whole.ok());
  const std::string expected = fingerprint(**whole);
  EXPECT_EQ((*whole)->notes.find("bad-event")->count, 8);
  for (const std::size_t block : {257U, 600U, 1024U, 4096U, 50'000U}) {
    for (const int threads : {1, 2, 7}) {
      const auto trace = load(file.path(), {.threads = threads, .limits = {.block = block}});
      ASSERT_TRUE(trace.ok());
      EXPECT_EQ(fingerprint(**trace), expected) << block << " bytes, " << threads << " threads";
    }
  }
}

TEST(Load, CompressedIsTheSame) {
  const TempFile file(long_document());
  const std::string expected = fingerprint(*loaded(long_document()));
  const std::string base = file.path();
  const auto check = [&](const std::string& command, const std::string& path) {
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    for (const std::size_t block : {1000U, 1U << 20}) {
      const auto trace = load(path, {.limits = {.block = block}});
      ASSERT_TRUE(trace.ok()) << trace.error().what;
      EXPECT_EQ(fingerprint(**trace), expected) << command;
    }
    std::remove(path.c_str());
  };
  check("gzip -kc " + base + " > " + base + ".gz", base + ".gz");
  check("gzip -k " + base, base + ".gz");  // with a file name in the header
  check("(head -c 5000 " + base + " | gzip -c; tail -c +5001 " + base + " | gzip -c) > " + base +
            ".gz",
        base + ".gz");
  check("zstd -q -c " + base + " > " + base + ".zst", base + ".zst");
  check("(head -c 5000 " + base + " | zstd -q -c; tail -c +5001 " + base + " | zstd -q -c) > " +
            base + ".zst",
        base + ".zst");
}

TEST(Load, TruncatedCompressionIsNoted) {
  const TempFile file(long_document());
  const std::string gz = file.path() + ".gz";
  ASSERT_EQ(std::system(("gzip -c " + file.path() + " | head -c 3000 > " + gz).c_str()), 0);
  const auto trace = load(gz, {});
  std::remove(gz.c_str());
  ASSERT_TRUE(trace.ok()) << trace.error().what;
  ASSERT_NE((*trace)->notes.find("truncated"), nullptr);
  EXPECT_NE((*trace)->notes.find("truncated")->message.find("gzip data ends early"),
            std::string::npos);
  EXPECT_GT((*trace)->device.size(), 0U);
}

// More different keys than a reader remembers, and one that means something else in args than beside them.
TEST(Load, ManyKeysDoNotChangeWhatAKeyMeans) {
  std::string args = R"({"first": 0)";
  for (int i = 0; i < 400; ++i) args += R"(, "key )" + std::to_string(i) + R"(": 0)";
  args += R"(, "dur": 7})";
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "cpu_op", "name": "many", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": )" +
      args +
      R"(}, {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 2, "new": 0, "dur": 5})"));
  ASSERT_EQ(trace->ops.size(), 2U);
  EXPECT_EQ(trace->ops.dur[1], 5000);
}

TEST(Load, NumbersWithAZeroInFrontAreNone) {
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 03, "ts": 1, "dur": 1}, )"
      R"({"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": "03", "ts": 0.5, "dur": 0})"));
  ASSERT_EQ(trace->ops.size(), 2U);
  ASSERT_NE(trace->notes.find("bad-number"), nullptr);
  EXPECT_EQ(trace->notes.find("bad-number")->count, 1);
}

TEST(Load, CancelledByProgress) {
  const TempFile file(long_document());
  const auto result = load(file.path(), {.threads = 1,
                                         .limits = {.block = 1024},
                                         .progress = [](const Progress&) { return false; },
                                         .progress_interval = {}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Error::Code::kInterrupted);
}

TEST(Load, TextBeyondTheLimitsIsRefusedOrLeftOut) {
  const Limits limits{.block = 64, .head = 512, .event = 1024};
  const TempFile late(R"({"traceName": ")" + std::string(2000, 'x') + R"(", "traceEvents": [)" +
                      kernel(1, "5", "1") + "]}");
  const auto refused = load(late.path(), {.limits = limits});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("no \"traceEvents\" in the first"), std::string::npos);

  const std::string endless = R"({"ph": "X", "cat": "kernel", "name": ")" + std::string(5000, 'x');
  const TempFile damaged(document(kernel(1, "5", "1") + "," + endless + "\n," +
                                  kernel(2, "6", "1") + "," + kernel(3, "7", "1")));
  const auto trace = load(damaged.path(), {.limits = limits});
  ASSERT_TRUE(trace.ok());
  ASSERT_NE((*trace)->notes.find("limit"), nullptr);
  EXPECT_EQ((*trace)->device.size(), 3U);
}

TEST(Load, LaunchesTellTheirKernelAndKernelsTheirNode) {
  const auto trace = loaded(document(
      R"({"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 2,)"
      R"( "args": {"kernel": "gemm", "correlation": 1}}, )"
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 9, "tid": 9, "ts": 4, "dur": 2, "args": {}}, )" +
      kernel(1, "5", "1") + ", " + kernel(2, "6", "1", R"(, "graph node id": 8589934593)")));
  ASSERT_EQ(trace->calls.size(), 2U);
  EXPECT_EQ(trace->strings[trace->calls.kernel[0]], "gemm");
  EXPECT_EQ(trace->strings[trace->calls.kernel[1]], "");
  EXPECT_EQ(trace->device.graph_node, (std::vector<std::int64_t>{store::kNoId, 8589934593}));
}

}  // namespace
}  // namespace culprit::ingest
