// The parts beneath: the clock's arithmetic, the JSON text, the logs.
#include <cmath>
#include <ctime>
#include <random>

#include "profile/clock.h"
#include "profile/json_text.h"
#include "profile/log.h"
#include "unit/profile_trace.h"

namespace culprit::profile::detail {
namespace {

using profile::Json;

TEST(Clock, TicksBecomeTimesOfTheEpochInTheirOrder) {
  choose_clock();
  const Reading first = read_clocks();
  std::vector<Ticks> ticks;
  const Nanos until = monotonic_now() + 6'000'000;
  while (monotonic_now() < until) ticks.push_back(now());
  const Reading last = read_clocks();
  const Calibration calibration(first, last);
  Nanos before = 0;
  for (const Ticks tick : ticks) {
    EXPECT_GE(calibration.epoch_ns(tick), before);
    before = calibration.epoch_ns(tick);
  }
  EXPECT_EQ(calibration.epoch_ns(last.ticks) - calibration.epoch_ns(first.ticks),
            last.monotonic - first.monotonic);
  EXPECT_LT(
      std::abs(static_cast<double>(calibration.epoch_ns(now()) / 1'000'000'000 - time(nullptr))),
      3);
}

TEST(Clock, ConversionIsExactOverHours) {
  // 3 GHz for 24 hours: held against long double, within its rounding.
  const Reading first{1'000'000'007, 5'000},
      last{1'000'000'007 + 259'200'000'000'000, 5'000 + 86'400'000'000'000};
  const Calibration calibration(first, last);
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const Ticks since = random() % 259'200'000'000'000;
    const long double expected = static_cast<long double>(since) / 3;
    const Nanos got = calibration.epoch_ns(first.ticks + since) - calibration.epoch_ns(first.ticks);
    EXPECT_NEAR(static_cast<double>(static_cast<long double>(got) - expected), 0, 1);
  }
}

TEST(Clock, TwoReadingsAtOneTimeDivideByNothing) {
  const Calibration calibration({10, 20}, {10, 20});
  EXPECT_EQ(calibration.epoch_ns(12) - calibration.epoch_ns(10), 2);
}

std::string written(const std::function<void(JsonText&)>& write) {
  const Folder folder;
  TraceFile file(folder.file("t.json"));
  EXPECT_FALSE(file.open());
  {
    JsonText text(file);
    write(text);
  }
  EXPECT_FALSE(file.commit());
  return read(folder.file("t.json"));
}

TEST(JsonText, MicrosHaveThreeDigits) {
  const std::pair<Nanos, const char*> cases[] = {{0, "0.000"},
                                                 {7, "0.007"},
                                                 {999, "0.999"},
                                                 {1000, "1.000"},
                                                 {1234567, "1234.567"},
                                                 {-1, "-0.001"},
                                                 {-1'234'050, "-1234.050"},
                                                 {7'889'237'999'999'999, "7889237999999.999"}};
  for (const auto& [ns, text] : cases)
    EXPECT_EQ(written([&](JsonText& json) { json.micros(ns); }), text);
}

// Strict, and nothing else changed: what is valid comes back as it was.
TEST(JsonText, RandomBytesAreReadBackByAStrictParser) {
  constexpr unsigned char kParts[] = {0xc2, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0x80, 0x9f, 0xa0, 0xbf};
  std::mt19937_64 random(11);
  std::vector<std::string> texts(5000);
  for (std::string& text : texts)
    for (std::uint64_t n = random() % 12; n > 0; --n)
      text += static_cast<char>(random() % 3 > 0 ? kParts[random() % 10] : random() % 256);
  const Json back = Json::parse(written([&](JsonText& out) {
    out.raw("[");
    for (const std::string& text : texts) out.raw(&text == &texts[0] ? "" : ",").quoted(text);
    out.raw("]");
  }));
  ASSERT_EQ(back.size(), texts.size());
  int valid = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string kept = Json(texts[i]).dump(-1, ' ', false, Json::error_handler_t::ignore);
    const std::string marked = Json(texts[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (kept == marked)
      EXPECT_EQ(back[i], texts[i]);
    else
      EXPECT_NE(back[i].get<std::string>().find("\xef\xbf\xbd"), std::string::npos);
    valid += kept == marked ? 1 : 0;
  }
  EXPECT_GT(valid, 500);
}

TEST(JsonText, LongTextsArePassedOnInPieces) {
  const std::string text = written([](JsonText& json) {
    for (int i = 0; i < 100'000; ++i) json.number(i % 10);
  });
  EXPECT_EQ(text.size(), 100'000U);
  EXPECT_EQ(text.substr(99'990), "0123456789");
}

TEST(Log, RecordsComeBackInOrderAcrossBlocks) {
  Arena arena(4 * Block::kBytes);
  Log log;
  std::size_t written = 0;
  for (; std::byte* at = log.take(sizeof(Record) + 8 * (written % 7), arena); ++written) {
    auto* record = new (at) Record;
    record->id = written;
    record->size = static_cast<std::uint32_t>(sizeof(Record) + 8 * (written % 7));
    log.publish();
  }
  std::size_t seen = 0;
  for_each_record(log, [&](const Record& record) { EXPECT_EQ(record.id, seen++); });
  EXPECT_EQ(seen, written);
  EXPECT_GT(written, 4 * Block::kBytes / (sizeof(Record) + 56));
  EXPECT_EQ(arena.take(), nullptr);
}

}  // namespace
}  // namespace culprit::profile::detail
