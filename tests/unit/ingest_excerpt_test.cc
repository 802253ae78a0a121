// Places point at the events' texts, and an excerpt gives those texts again, whatever the blocks.
#include "ingest/excerpt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ingest/strict.h"
#include "temp_file.h"

namespace culprit::ingest {
namespace {

using test::TempFile;

constexpr std::string_view kKernel =
    R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 2, "args": {"stream": 7, "correlation": 1}})";
constexpr std::string_view kCall =
    R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":4,"tid":4,"ts":1,"dur":2,"args":{"correlation":1}})";
constexpr std::string_view kFlow =
    R"({"ph": "s", "id": 1, "pid": 4, "tid": 4, "ts": 1, "cat": "ac2g", "name": "ac2g"})";
constexpr std::string_view kName =
    R"({"name": "process_name", "ph": "M", "ts": 0, "pid": 4, "tid": 0, "args": {"name": "python"}})";
constexpr std::string_view kCounter =
    R"({"ph": "C", "name": "GPU 0", "pid": 0, "ts": 11.5, "args": {"MB": 3}})";

std::string document(int repeats) {
  std::string text = R"({"schemaVersion": 1, "note": "\"traceEvents\"", "traceEvents": [)";
  for (int i = 0; i < repeats; ++i) {
    for (const std::string_view event : {kName, kCall, kFlow, kKernel, kCounter}) {
      if (text.back() != '[') text += ",\n  ";
      text += event;
    }
  }
  return text + "], \"last\": 1}";
}

Options small_blocks(std::size_t block) {
  Options options;
  options.threads = 2;
  options.places = true;
  options.limits.block = block;
  return options;
}

std::vector<std::string> texts(const std::string& path, std::vector<std::int64_t> bytes,
                               const Options& options, std::int64_t rewritten = 0) {
  std::vector<std::string> out;
  std::sort(bytes.begin(), bytes.end());
  const auto excerpt =
      copy_events(path, bytes, options, [&](std::string_view text) { out.emplace_back(text); });
  EXPECT_TRUE(excerpt.ok()) << (excerpt.ok() ? "" : excerpt.error().what);
  EXPECT_EQ(excerpt.ok() ? excerpt->rewritten : -1, rewritten);
  return out;
}

TEST(Excerpt, EveryEventIsWhereItsPlaceSaysInBlocksOfAnySize) {
  constexpr int kRepeats = 40;
  const TempFile file(document(kRepeats));
  for (const std::size_t block : {200U, 331U, 4096U, 1U << 20}) {
    const Options options = small_blocks(block);
    const auto trace = load(file.path(), options);
    ASSERT_TRUE(trace.ok());
    const store::Places& places = (*trace)->places;
    EXPECT_EQ(texts(file.path(), places.device, options),
              std::vector<std::string>(kRepeats, std::string(kKernel)));
    EXPECT_EQ(texts(file.path(), places.calls, options),
              std::vector<std::string>(kRepeats, std::string(kCall)));
    std::vector<std::int64_t> others;
    for (const store::OtherEvent& other : places.others) others.push_back(other.byte);
    ASSERT_EQ(others.size(), 3U * kRepeats);
    const std::vector<std::string> found = texts(file.path(), others, options);
    EXPECT_EQ(found[0], kName);
    EXPECT_EQ(found[1], kFlow);
    EXPECT_EQ(found[2], kCounter);
    EXPECT_EQ(places.others[1].kind, store::OtherKind::kFlow);
    EXPECT_EQ(places.others[1].at, 1'000);
    EXPECT_EQ(places.others[1].thread, (*trace)->calls.thread[0]);
    EXPECT_EQ(places.others[2].at, 11'500);
  }
}

TEST(Excerpt, TheHeadIsKeptAsWritten) {
  const TempFile file(document(1));
  const auto trace = load(file.path(), small_blocks(1U << 20));
  ASSERT_TRUE(trace.ok());
  const std::vector<std::pair<std::string, std::string>> head{
      {"last", "1"}, {"note", R"("\"traceEvents\"")"}, {"schemaVersion", "1"}};
  EXPECT_EQ((*trace)->places.head, head);
}

TEST(Excerpt, NothingIsKeptUnlessAskedFor) {
  const TempFile file(document(3));
  Options options = small_blocks(1U << 20);
  options.places = false;
  const auto trace = load(file.path(), options);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE((*trace)->places.device.empty());
  EXPECT_TRUE((*trace)->places.others.empty());
  EXPECT_TRUE((*trace)->places.head.empty());
}

TEST(Excerpt, WhatIsNoJsonIsWrittenAnewWithTheSameMeaning) {
  const std::string broken =
      R"({"ph": "X", "cat": "kernel", "name": "gemm<"fp8">)"
      "\x01\xff"
      R"(", "pid": "0", "tid": "stream 7", "ts": 10.125, "dur": 2, "args": {"occupancy": inf, "stream": 7, "correlation": 12, "grid": [4, 1, 1]}})";
  const TempFile file("[" + broken + ",\n" + std::string(kKernel) + "]");
  const Options options = small_blocks(1U << 20);
  const auto trace = load(file.path(), options);
  ASSERT_TRUE(trace.ok());
  const std::vector<std::string> found =
      texts(file.path(), (*trace)->places.device, options, /*rewritten=*/1);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_FALSE(is_strict_json(broken));
  EXPECT_TRUE(is_strict_json(found[0])) << found[0];
  EXPECT_EQ(found[1], kKernel);
  const TempFile again("[" + found[0] + "]");
  const auto reread = load(again.path(), options);
  ASSERT_TRUE(reread.ok());
  const store::DeviceTable &was = (*trace)->device, &is = (*reread)->device;
  ASSERT_EQ(is.size(), 1U);
  EXPECT_EQ(is.begin[0], was.begin[0]);
  EXPECT_EQ(is.correlation[0], 12);
  EXPECT_EQ(is.grid[0], was.grid[0]);
  EXPECT_EQ((*reread)->strings[is.name[0]], (*trace)->strings[was.name[0]]);
  EXPECT_TRUE((*reread)->notes.all().empty());
}

TEST(Excerpt, AFileThatChangedIsRefused) {
  const TempFile file(document(2)), other("[" + std::string(kCounter) + "]");
  const Options options = small_blocks(1U << 20);
  const auto trace = load(file.path(), options);
  ASSERT_TRUE(trace.ok());
  const auto excerpt = copy_events(other.path(), (*trace)->places.device, options,
                                   [](std::string_view) { FAIL() << "an event was handed out"; });
  ASSERT_FALSE(excerpt.ok());
  EXPECT_EQ(excerpt.error().code, Error::Code::kBadInput);
}

}  // namespace
}  // namespace culprit::ingest
