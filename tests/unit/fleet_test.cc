// Summaries: what is written is what is read, whatever is broken is told; shares, cuts, and the merge of
// more collectives than fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>

#include "fleet/archive.h"
#include "fleet/merge.h"
#include "fleet/share.h"
#include "fleet/shelf.h"
#include "fleet/summary.h"

namespace culprit::fleet {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "culprit-fleet-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code failed;
    fs::remove_all(path_, failed);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr Nanos kStep = 1'000'000;
constexpr std::int64_t kCallsOfStep = 10;

// Rank `rank` of four that meet ten times a step; rank 2 comes 30 us later than the others every time.
Summary summary_of(std::int64_t rank, std::int64_t steps) {
  constexpr Nanos kEpoch = 1'700'000'000'000'000'000, kLate = 30'000, kOwn = 60'000,
                  kTransfer = 10'000;
  Summary summary;
  summary.kind = Kind::kRank;
  summary.path = "run/rank" + std::to_string(rank) + ".json";
  summary.format = "kineto-json";
  summary.bytes = 1'000;
  summary.events = 50;
  evidence::RankFigures& figures = summary.figures;
  figures.rank = rank;
  figures.kernels = steps;
  figures.kind = run::StepKind::kDecode;
  figures.how = run::StepsHow::kMarked;
  figures.steps.found = figures.steps.used = steps;
  figures.steps.mean = kStep;
  figures.budget = {{known::Owner::kGemm, kStep / 2, 0.5, 3},
                    {known::Owner::kComm, kStep / 2, 0.5, 10}};
  evidence::RankRecord& record = figures.record;
  record.world = 4;
  record.steps = steps;
  record.kinds = {{"[0, 1, 2, 3]", "allreduce of 4096 BFloat16", 4}};
  record.kernels = {{"gemm", known::Owner::kGemm, 3, 96, kStep / 2 + (rank == 2 ? kLate * 10 : 0)}};
  record.begin = kEpoch;
  Nanos now = kEpoch;
  for (std::int64_t s = 0; s < steps; ++s) {
    summary.steps.push_back({now - kEpoch, kStep, run::StepKind::kDecode, 8, true});
    for (std::int64_t c = 0; c < kCallsOfStep; ++c) {
      const Nanos came = now + kOwn + (rank == 2 ? kLate : 0),
                  left = now + kOwn + kLate + kTransfer;
      evidence::RankCall call;
      call.begin = came;
      call.end = left;
      call.sequence = s * kCallsOfStep + c;
      call.step = static_cast<run::StepIndex>(s);
      call.since.ns[0] = came - now;
      call.since.kernels = 4;
      record.calls.push_back(call);
      record.exposed_comm.push_back({came, left});
      now = left;
    }
  }
  record.end = now;
  summary.calls_in_all = summary.calls_kept = std::ssize(record.calls);
  summary.steps_in_all = steps;
  summary.suspects = {{"host-launch", "culprit", "likely", "because", 5, 4}};
  summary.notes.add({"truncated", store::Severity::kDataLoss, 2, 77, {}, "end", "cut off"});
  return summary;
}

std::string bytes_of(const Summary& summary) {
  const Encoded encoded = encode(summary);
  std::string bytes = encoded.head + encoded.tail;
  for (const std::string& block : encoded.blocks) bytes += block;
  return bytes;
}

// What the steps of a summary say, by way of its bytes.
Summary back_from(const Encoded& encoded, StepRange steps = {}) {
  Summary back;
  std::vector<StepRange> blocks;
  EXPECT_TRUE(decode_head(encoded.head, back));
  EXPECT_TRUE(decode_tail(encoded.tail, back, blocks));
  EXPECT_EQ(blocks.size(), encoded.blocks.size());
  for (const std::string& block : encoded.blocks) EXPECT_TRUE(decode_block(block, steps, back));
  return back;
}

TEST(Archive, NumbersOfEverySizeComeBack) {
  std::mt19937_64 random(5);
  std::vector<std::int64_t> numbers{0,
                                    1,
                                    -1,
                                    63,
                                    64,
                                    -64,
                                    -65,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()};
  for (int i = 0; i < 2'000; ++i)
    numbers.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
  std::vector<double> reals{0, -0.0, 1e300, 0.1, -3};
  std::optional<std::string> there("a\0b"), absent;
  Writer writer;
  items(writer, numbers, reals, there, absent);
  const std::string bytes = writer.take();
  std::vector<std::int64_t> numbers_back;
  std::vector<double> reals_back;
  std::optional<std::string> there_back, absent_back("x");
  Reader reader(bytes);
  items(reader, numbers_back, reals_back, there_back, absent_back);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(numbers_back, numbers);
  EXPECT_EQ(reals_back, reals);
  EXPECT_EQ(there_back, there);
  EXPECT_EQ(absent_back, std::nullopt);
}

TEST(Summary, ComesBackAsItWas) {
  const Summary summary = summary_of(2, 700);  // of several blocks
  const Encoded encoded = encode(summary);
  EXPECT_GT(encoded.blocks.size(), 3);
  Summary head;
  ASSERT_TRUE(decode_head(encoded.head, head));
  EXPECT_TRUE(head.figures.record.calls.empty());
  EXPECT_EQ(head.figures.rank, 2);
  EXPECT_EQ(head.figures.steps.mean, kStep);
  ASSERT_NE(head.notes.find("truncated"), nullptr);
  EXPECT_EQ(head.notes.find("truncated")->byte, 77);
  const Summary back = back_from(encoded);
  EXPECT_EQ(back.figures.record.calls.size(), 7'000);
  EXPECT_EQ(back.figures.record.calls[6'999].end, summary.figures.record.calls[6'999].end);
  EXPECT_EQ(back.figures.record.exposed_comm, summary.figures.record.exposed_comm);
  EXPECT_EQ(back.steps[1].batch, 8);
  EXPECT_EQ(bytes_of(back), bytes_of(summary));
}

TEST(Summary, StepsComeBackAlone) {
  const Summary summary = summary_of(1, 700);
  const Encoded encoded = encode(summary);
  std::size_t calls = 0, spans = 0;
  for (std::int64_t first = 0; first < 700; first += 90) {
    const Summary part = back_from(encoded, {first, first + 90});
    for (const evidence::RankCall& call : part.figures.record.calls) {
      EXPECT_GE(call.step, first);
      EXPECT_LT(call.step, first + 90);
    }
    calls += part.figures.record.calls.size();
    spans += part.figures.record.exposed_comm.size();
    EXPECT_EQ(part.figures.record.exposed_comm.front().begin,
              part.figures.record.calls.front().begin);
    EXPECT_EQ(part.figures.record.exposed_comm.back().end, part.figures.record.calls.back().end);
  }
  EXPECT_EQ(calls, summary.figures.record.calls.size());
  EXPECT_EQ(spans, summary.figures.record.exposed_comm.size());
}

TEST(Summary, BytesThatAreCutOffOrRefuseToFitAreNone) {
  const Encoded encoded = encode(summary_of(1, 2));
  std::vector<StepRange> blocks;
  for (std::size_t size = 0; size < encoded.head.size(); ++size) {
    Summary back;
    EXPECT_FALSE(decode_head(std::string_view(encoded.head).substr(0, size), back)) << size;
  }
  for (std::size_t size = 0; size < encoded.tail.size(); ++size) {
    Summary back;
    EXPECT_FALSE(decode_tail(std::string_view(encoded.tail).substr(0, size), back, blocks)) << size;
  }
  Summary back;
  ASSERT_TRUE(decode_tail(encoded.tail, back, blocks));
  for (std::size_t size = 0; size < encoded.blocks[0].size(); ++size)
    EXPECT_FALSE(decode_block(std::string_view(encoded.blocks[0]).substr(0, size), {}, back))
        << size;
  EXPECT_TRUE(decode_block(encoded.blocks[0], {}, back));
  Summary stranger = summary_of(1, 2);
  stranger.figures.record.calls[3].kind = 1;  // there is one kind
  EXPECT_FALSE(decode_block(encode(stranger).blocks[0], {}, back));
}

TEST(Summary, IsCutBetweenStepsWithWhatCountsThem) {
  const Summary whole = summary_of(0, 6);
  const auto calls_of = [&](std::size_t most) {
    Summary summary = whole;
    cut(summary, most);
    EXPECT_EQ(summary.figures.record.exposed_comm.size(), summary.figures.record.calls.size());
    return summary.figures.record.calls.size();
  };
  EXPECT_EQ(calls_of(60), 60);
  EXPECT_EQ(calls_of(59), 50);
  EXPECT_EQ(calls_of(30), 30);
  EXPECT_EQ(calls_of(3), 3);  // of the first step that counts what fits
  Summary half = whole;
  half.steps[1].used = false;
  cut(half, 30);
  EXPECT_EQ(half.figures.record.steps, 2);
}

TEST(Share, TheLargestGoFirstAndNobodyGetsMuchMore) {
  EXPECT_EQ(share_out({5, 9, 1, 4, 3}, 2),
            (std::vector<std::vector<std::size_t>>{{1, 4}, {0, 3, 2}}));
  EXPECT_EQ(share_out({}, 2), std::vector<std::vector<std::size_t>>(2));
  std::mt19937_64 random(3);
  for (const std::size_t parts : {1U, 3U, 16U}) {
    std::vector<std::int64_t> bytes;
    for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<std::int64_t>(random() % 1'000));
    std::vector<std::int64_t> loads;
    std::vector<std::size_t> all;
    for (const std::vector<std::size_t>& share : share_out(bytes, parts)) {
      loads.push_back(0);
      for (const std::size_t trace : share) loads.back() += bytes[trace], all.push_back(trace);
    }
    std::sort(all.begin(), all.end());
    std::vector<std::size_t> each(bytes.size());
    std::iota(each.begin(), each.end(), std::size_t{0});
    EXPECT_EQ(all, each);
    EXPECT_LE(*std::max_element(loads.begin(), loads.end()) -
                  *std::min_element(loads.begin(), loads.end()),
              1'000);
  }
}

TEST(Shelf, KeepsOneSummaryForOneTraceAndOneSetOfFlags) {
  const Folder folder;
  const Shelf shelf(folder.path(), "flags"), other(folder.path(), "other flags");
  const TraceFile trace{"run/rank1.json", 1'000, 42};
  EXPECT_FALSE(shelf.has(trace));
  ASSERT_TRUE(shelf.keep(trace, summary_of(1, 2)).ok());
  EXPECT_TRUE(shelf.has(trace));
  EXPECT_FALSE(shelf.has({trace.path, 1'001, 42}));
  EXPECT_FALSE(shelf.has({trace.path, 1'000, 43}));
  EXPECT_FALSE(shelf.has({"run/rank2.json", 1'000, 42}));
  EXPECT_FALSE(other.has(trace));
  EXPECT_FALSE(other.load_head(trace).ok());
  const Result<Summary> back = shelf.load(trace);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(bytes_of(*back), bytes_of(summary_of(1, 2)));
  shelf.drop(trace);
  EXPECT_FALSE(shelf.has(trace));
}

TEST(Shelf, FaultsOfTheTraceAreKeptAndFaultsOfTheMomentAreTriedAgain) {
  const Folder folder;
  const Shelf shelf(folder.path(), "");
  const TraceFile broken{"broken.json", 3, 1}, locked{"locked.json", 3, 1};
  ASSERT_TRUE(shelf
                  .keep(broken, summarize_fault("broken.json", 3,
                                                {Error::Code::kBadInput, "no array", "", ""}))
                  .ok());
  ASSERT_TRUE(
      shelf
          .keep(locked, summarize_fault("locked.json", 3,
                                        {Error::Code::kCannotRead, "no permission", "", ""}))
          .ok());
  EXPECT_TRUE(shelf.has(broken));
  EXPECT_FALSE(shelf.has(locked));
  const Result<Summary> back = shelf.load(locked);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->fault->what, "no permission");
}

TEST(Shelf, ADamagedSummaryIsNone) {
  const Folder folder;
  const Shelf shelf(folder.path(), "flags");
  const TraceFile trace{"run/rank1.json", 1'000, 42};
  ASSERT_TRUE(shelf.keep(trace, summary_of(1, 2)).ok());
  std::ifstream in(shelf.file_of(trace), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_TRUE(replace_file(shelf.file_of(trace), damaged).ok());
    EXPECT_FALSE(shelf.load(trace).ok()) << at;
    ASSERT_TRUE(replace_file(shelf.file_of(trace), whole.substr(0, at)).ok());
    EXPECT_FALSE(shelf.load(trace).ok()) << at;
    EXPECT_FALSE(shelf.has(trace)) << at;
  }
}

constexpr std::size_t kRoom = 400'000;

// Four ranks on a shelf, merged with room for so many collectives.
Merged merged_of(std::size_t room) {
  const Folder folder;
  const Shelf shelf(folder.path(), "");
  std::vector<TraceFile> traces;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    traces.push_back({"run/rank" + std::to_string(rank) + ".json", 1'000, 0});
    EXPECT_TRUE(shelf.keep(traces.back(), summary_of(rank, 60)).ok());
  }
  Result<Merged> merged = merge(shelf, traces, room);
  EXPECT_TRUE(merged.ok());
  return merged.ok() ? *std::move(merged) : Merged{};
}

TEST(Merge, IsTheRanksSideBySide) {
  std::vector<evidence::RankFigures> figures;
  for (std::int64_t rank = 0; rank < 4; ++rank) figures.push_back(summary_of(rank, 60).figures);
  const evidence::Ranks whole = evidence::compare_ranks(figures);
  const Merged merged = merged_of(kRoom);
  EXPECT_EQ(merged.related, 2'400);
  EXPECT_EQ(merged.calls, 2'400);
  EXPECT_EQ(merged.stretches, 1);
  ASSERT_EQ(merged.ranks.all.size(), 4);
  EXPECT_EQ(whole.headline, 2);
  EXPECT_EQ(merged.ranks.headline, whole.headline);
  EXPECT_EQ(merged.ranks.skew.late, whole.skew.late);
  EXPECT_EQ(merged.ranks.skew.as_the_others, whole.skew.as_the_others);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(merged.ranks.skew.ranks[r].late, whole.skew.ranks[r].late);
    EXPECT_EQ(merged.ranks.skew.ranks[r].cause, whole.skew.ranks[r].cause);
    EXPECT_EQ(merged.ranks.all[r].wait_ns_per_step, whole.all[r].wait_ns_per_step);
    EXPECT_TRUE(merged.ranks.all[r].record.calls.empty());
  }
}

TEST(Merge, HoldsMoreWhereTracesAreLarge) {
  EXPECT_EQ(most_held({{"a", 1'000, 0}, {"b", 21'000'000, 0}}), 52'500);
  EXPECT_EQ(most_held({{"a", 1'000, 0}}), 50'000);
  EXPECT_EQ(most_held({{"a", 9'000'000'000, 0}}), 400'000);
}

TEST(Merge, WithLessRoomStretchesSayTheSame) {
  const Merged whole = merged_of(kRoom), parts = merged_of(1'000);
  EXPECT_EQ(parts.stretches, 3);  // 25 steps, 25 and 10
  EXPECT_EQ(parts.related, 2'400);
  EXPECT_EQ(parts.ranks.headline, whole.ranks.headline);
  EXPECT_EQ(parts.ranks.skew.late, whole.ranks.skew.late);
  EXPECT_EQ(parts.ranks.skew.recorded, parts.ranks.skew.reproduced);
  const auto ratio = [](const evidence::Skew& skew) {
    return static_cast<double>(skew.as_the_others) / static_cast<double>(skew.reproduced);
  };
  EXPECT_NEAR(ratio(parts.ranks.skew), ratio(whole.ranks.skew), 0.002);
  for (std::size_t r = 0; r < 4; ++r) {
    const evidence::RankSkew &own = parts.ranks.skew.ranks[r], &its = whole.ranks.skew.ranks[r];
    EXPECT_EQ(own.meetings, 600);
    EXPECT_EQ(own.last, its.last);
    EXPECT_EQ(own.late, its.late);
    EXPECT_EQ(own.cause, its.cause);
    EXPECT_EQ(own.waits_for, its.waits_for);
    EXPECT_EQ(parts.ranks.all[r].wait_ns_per_step, whole.ranks.all[r].wait_ns_per_step);
  }
}

TEST(Merge, WhatIsBrokenOrOfAnotherRunIsLeftOut) {
  const Folder folder;
  const Shelf shelf(folder.path(), "");
  std::vector<TraceFile> traces;
  const auto put = [&](const std::string& path, const Summary& summary) {
    traces.push_back({path, 1'000, 0});
    EXPECT_TRUE(shelf.keep(traces.back(), summary).ok());
  };
  Summary stranger = summary_of(3, 4);
  stranger.figures.record.kernels[0].name = "something else";
  put("a.json", stranger);  // the first, and yet the stranger
  put("b.json", summary_of(0, 4));
  put("c.json",
      summarize_fault("c.json", 9, {Error::Code::kBadInput, "no array", "", "", "not-a-trace"}));
  put("d.json", summary_of(1, 4));
  put("e.json", summary_of(0, 4));
  Summary capture;
  capture.kind = Kind::kCapture;
  put("f.json", capture);
  const Result<Merged> merged = merge(shelf, traces, kRoom);
  ASSERT_TRUE(merged.ok());
  ASSERT_EQ(merged->skipped.size(), 3);
  EXPECT_EQ(merged->skipped[0].file, 0);
  EXPECT_EQ(merged->skipped[0].code, "another-run");
  EXPECT_EQ(merged->skipped[1].code, "not-a-trace");
  EXPECT_EQ(merged->skipped[2].why, "it is rank 0, and so is b.json");
  EXPECT_EQ(merged->captures, std::vector<std::size_t>{5});
  ASSERT_EQ(merged->used.size(), 2);
  EXPECT_EQ(merged->used[1].file, 3);
}

}  // namespace
}  // namespace culprit::fleet
