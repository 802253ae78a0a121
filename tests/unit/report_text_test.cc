#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "report/report.h"
#include "unit/sample_answer.h"

namespace culprit::report {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool holds(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

int widest(const std::string& text) {
  int columns = 0;
  for (const std::string& line : lines_of(text)) {
    columns = std::max(columns, text::display_width(line));
  }
  return columns;
}

TEST(Screen, FitsEightyByForty) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string text = render_text(sample.answer, {});
  EXPECT_LE(lines_of(text).size(), 40U);
  EXPECT_LE(widest(text), 80);
}

TEST(Screen, FitsEveryWidthFromSixtyUp) {
  const test::SampleAnswer sample = test::sample_answer();
  for (int width = 60; width <= 160; width += 7) {
    const std::string text = render_text(sample.answer, {.width = width, .unicode = true});
    EXPECT_LE(lines_of(text).size(), 40U) << width;
    EXPECT_LE(widest(text), width);
  }
}

TEST(Screen, SaysWhoWhereHowMuchAndWhatAFixBuys) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string text = render_text(sample.answer, {.width = 120});
  for (const char* figure :
       {"whole-pool-cast", "64.6 of 93.2 ms", "flashinfer_mla_backend.py:639 forward_decode",
        "at most 64.6 ms per step (bound): 93.2 ms -> 28.6 ms, 34.9 tokens/s",
        "the host's launches", "kv_pool [495552, 1, 576] fp8_e4m3: 285,437,952 elements",
        "0.05 % of it in use", "557,496", "856 MB a call at 1,034 GB/s, 57.7 % of peak",
        "805,306,368 elements, the kernel wrote 285,437,952", "Disproved if", "kernels-missing",
        "culprit kernels rank0.json.gz"}) {
    EXPECT_TRUE(holds(text, figure)) << figure << "\n" << text;
  }
}

TEST(Screen, ShowsMoreWhereThereIsRoom) {
  const test::SampleAnswer sample = test::sample_answer();
  const auto rows = [&](int width) {
    const std::string text = render_text(sample.answer, {.width = width});
    int owners = 0;
    for (const evidence::BudgetRow& row : sample.evidence->budget) {
      owners += holds(text, std::string("\n") + std::string(known::owner_name(row.owner)) + " ");
    }
    return owners;
  };
  EXPECT_GT(rows(120), rows(80));
}

TEST(Screen, AllLiftsEveryLimit) {
  test::SampleAnswer sample = test::sample_answer();
  const std::string text = render_text(sample.answer, {.all = true});
  for (const evidence::BudgetRow& row : sample.evidence->budget) {
    EXPECT_TRUE(holds(text, known::owner_name(row.owner)));
  }
  EXPECT_TRUE(holds(text, "The first and last step are cut"));
  EXPECT_TRUE(holds(text, "read FP8 in the attention kernel"));
  EXPECT_FALSE(holds(text, "--all"));
}

TEST(Screen, BudgetTotalIsTheStep) {
  const test::SampleAnswer sample = test::sample_answer();
  for (const std::string& line : lines_of(render_text(sample.answer, {}))) {
    if (line.starts_with("total = step")) {
      EXPECT_TRUE(holds(line, "93.24 ms")) << line;
      EXPECT_TRUE(holds(line, "100.0 %")) << line;
      return;
    }
  }
  FAIL() << "no total";
}

TEST(Screen, AsciiHasNoOtherBytesAndColourOnlyAddsCodes) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string plain = render_text(sample.answer, {});
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  EXPECT_FALSE(holds(plain, "\x1b"));
  std::string colored = render_text(sample.answer, {.color = true});
  EXPECT_TRUE(holds(colored, "\x1b[1;31m"));
  for (std::size_t at; (at = colored.find('\x1b')) != std::string::npos;) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  EXPECT_EQ(colored, plain);
}

TEST(Screen, HostileNamesCannotMoveTheCursor) {
  test::SampleAnswer sample = test::sample_answer();
  sample.answer.path = "a\x1b[2J\nb\xFF.json";
  sample.verdict->headline = "evil \x1b]0;title\x07 \xE2\x80\xAE headline";
  sample.verdict->suspects[0].where[0].function = "f\r\x1b[1A";
  const std::string text = render_text(sample.answer, {.all = true});
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  }
}

TEST(Screen, AHealthyRunAccusesNobody) {
  test::SampleAnswer sample = test::sample_answer();
  sample.verdict->suspects.clear();
  sample.verdict->headline = "no single culprit: moe-gemm leads with 6 %";
  const std::string text = render_text(sample.answer, {});
  EXPECT_TRUE(holds(text, "no single culprit"));
  EXPECT_TRUE(holds(text, "healthy"));
  EXPECT_TRUE(holds(text, "at most 240 us to gain"));
  EXPECT_FALSE(holds(text, "fix buys"));
  EXPECT_LE(lines_of(text).size(), 40U);
}

TEST(Screen, InputWithoutAVerdictSaysWhy) {
  Answer answer;
  answer.path = "notes.json";
  answer.failure = Error{Error::Code::kBadInput, "no traceEvents", "notes.json: byte 0",
                         "give the profiler's file", "not-a-trace"};
  const std::string text = render_text(answer, {});
  EXPECT_TRUE(holds(text, "notes.json: no verdict: no traceEvents"));
  EXPECT_TRUE(holds(text, "give the profiler's file"));
  EXPECT_EQ(render_table(answer, Table::kKernels, {}), "");
}

TEST(Screen, PathsInCommandsAreQuotedForTheShell) {
  test::SampleAnswer sample = test::sample_answer();
  sample.answer.path = "it's a trace.json";
  EXPECT_TRUE(holds(render_text(sample.answer, {}), "culprit kernels 'it'\\''s a trace.json'"));
}

TEST(Tables, ShowTwentyRowsUnlessAll) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string some = render_table(sample.answer, Table::kSteps, {});
  EXPECT_EQ(lines_of(some).size(), 22U);  // title, 20 rows, "10 more: --all"
  EXPECT_TRUE(holds(some, "10 more: --all"));
  const std::string all = render_table(sample.answer, Table::kSteps, {.all = true});
  EXPECT_EQ(lines_of(all).size(), 31U);
}

TEST(Tables, StayWithinTheWidth) {
  const test::SampleAnswer sample = test::sample_answer();
  for (int t = 0; t <= static_cast<int>(Table::kGaps); ++t) {
    for (const int width : {60, 80, 100, 120, 200}) {
      const std::string text =
          render_table(sample.answer, static_cast<Table>(t), {.width = width, .unicode = true});
      EXPECT_LE(widest(text), width) << text;
      EXPECT_FALSE(text.empty());
    }
  }
}

TEST(Tables, OneUnitPerColumnAndPinnedOnDemand) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string text = render_table(sample.answer, Table::kBudget, {.unit = TimeUnit::kUs});
  EXPECT_TRUE(holds(text, "64,600 us"));
  EXPECT_TRUE(holds(text, "120 us"));
  EXPECT_FALSE(holds(text, " ms"));
}

TEST(Tables, KernelsShowBandwidthWhereItIsKnown) {
  const test::SampleAnswer sample = test::sample_answer();
  const std::string text = render_table(sample.answer, Table::kKernels, {.width = 120});
  EXPECT_TRUE(holds(text, "1,034"));
  EXPECT_TRUE(holds(text, "57.7 %"));
  EXPECT_TRUE(holds(text, "all kernels"));
}

TEST(Tables, LayersSayWhatARowBelongsTo) {
  test::SampleAnswer sample = test::sample_answer();
  sample.evidence->kernels[4].calls_per_step = 3;
  sample.evidence->kernels[5].calls_per_step = 75;
  const std::string text = render_table(sample.answer, Table::kLayers, {.width = 120});
  EXPECT_TRUE(holds(text, "78 layers (told by call-counts), the first 3 dense"));
  EXPECT_TRUE(holds(text, "every layer"));
  EXPECT_TRUE(holds(text, "dense layers"));
  EXPECT_TRUE(holds(text, "75 of 78 layers"));
  sample.run->layers = {};
  EXPECT_TRUE(holds(render_table(sample.answer, Table::kLayers, {}), "not known"));
}

}  // namespace
}  // namespace culprit::report
