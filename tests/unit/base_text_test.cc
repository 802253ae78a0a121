#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace culprit::text {
namespace {

TEST(Duration, HasThreeSignificantDigitsInOneUnit) {
  EXPECT_EQ(duration(0, true), "0 ns");
  EXPECT_EQ(duration(999, true), "999 ns");
  EXPECT_EQ(duration(1'000, true), "1.00 µs");
  EXPECT_EQ(duration(828'000, true), "828 µs");
  EXPECT_EQ(duration(828'000, false), "828 us");
  EXPECT_EQ(duration(93'240'000, true), "93.2 ms");
  EXPECT_EQ(duration(1'938'000'000, true), "1.94 s");
  EXPECT_EQ(duration(-64'600'000, true), "-64.6 ms");
  EXPECT_EQ(duration(123'456'000'000'000, true), "123,456 s");
}

TEST(Duration, CarriesIntoTheNextUnitInsteadOfShowingFourDigits) {
  EXPECT_EQ(duration(999'499, true), "999 µs");
  EXPECT_EQ(duration(999'500, true), "1.00 ms");
  EXPECT_EQ(duration(9'996, true), "10.0 µs");
}

TEST(Duration, DoesNotPassThroughADouble) {
  constexpr Nanos kLongest = std::numeric_limits<Nanos>::max();
  EXPECT_EQ(in_unit(kLongest, TimeUnit::kNs, 0), "9,223,372,036,854,775,807");
  EXPECT_EQ(in_unit(kLongest, TimeUnit::kS, 3), "9,223,372,036.855");
  EXPECT_EQ(in_unit(std::numeric_limits<Nanos>::min(), TimeUnit::kMs, 2), "-9,223,372,036,854.78");
}

TEST(InUnit, RoundsHalfAwayFromZeroAndNeverShowsMinusZero) {
  EXPECT_EQ(in_unit(1'050'000, TimeUnit::kMs, 1), "1.1");
  EXPECT_EQ(in_unit(-1'050'000, TimeUnit::kMs, 1), "-1.1");
  EXPECT_EQ(in_unit(-4, TimeUnit::kMs, 2), "0.00");
  EXPECT_EQ(in_unit(1'034'200'000, TimeUnit::kMs, 1), "1,034.2");
}

TEST(Column, UnitAndDecimalsFollowTheLargestValue) {
  EXPECT_EQ(unit_for(93'240'000), TimeUnit::kMs);
  EXPECT_EQ(unit_for(999), TimeUnit::kNs);
  EXPECT_EQ(unit_for(2'000'000'000), TimeUnit::kS);
  EXPECT_EQ(decimals_for(93'240'000, TimeUnit::kMs), 2);
  EXPECT_EQ(decimals_for(465'300'000, TimeUnit::kMs), 1);
  EXPECT_EQ(decimals_for(2'000'000'000, TimeUnit::kMs), 0);
  EXPECT_EQ(decimals_for(9'823'000, TimeUnit::kMs), 3);
  EXPECT_EQ(decimals_for(999, TimeUnit::kNs), 0);
  EXPECT_EQ(unit_name(TimeUnit::kUs, false), "us");
}

TEST(Figures, BytesCountsAndShares) {
  EXPECT_EQ(bytes(12), "12 B");
  EXPECT_EQ(bytes(856'313'856), "856 MB");
  EXPECT_EQ(bytes(66'792'480'768), "66.8 GB");
  EXPECT_EQ(count(285'437'952), "285,437,952");
  EXPECT_EQ(count(-1'000), "-1,000");
  EXPECT_EQ(count(999), "999");
  EXPECT_EQ(number(1'034.18), "1,034");
  EXPECT_EQ(number(34.96), "35.0");
  EXPECT_EQ(number(0.05123), "0.0512");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(fixed(-0.001, 1), "0.0");
  EXPECT_EQ(percent(0.6928), "69.3 %");
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(percent(0.0005), "0.05 %");
  EXPECT_EQ(percent(0.0000001), "< 0.001 %");
  EXPECT_EQ(percent(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(Utf8, BrokenSequencesBecomeOneReplacementEach) {
  EXPECT_EQ(valid_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(valid_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");              // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80").find('\xED'), std::string::npos);      // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80").find('\xF4'), std::string::npos);  // above 10FFFF
  EXPECT_EQ(valid_utf8("\xE2\x82"), "\xEF\xBF\xBD");                          // cut short
  EXPECT_EQ(valid_utf8("µ→漢\xF0\x9F\x98\x80"), "µ→漢\xF0\x9F\x98\x80");
}

TEST(Clean, RemovesWhatCouldMoveTheCursorOrTurnTheText) {
  EXPECT_EQ(clean("a\x1b[31mb"), "a[31mb");
  EXPECT_EQ(clean("one\ntwo\tthree\r"), "one two three ");
  EXPECT_EQ(clean("\xE2\x80\xAE"
                  "evil\xE2\x81\xA6"),
            "evil");  // right-to-left override, isolate
  EXPECT_EQ(clean("\xC2\x9B"
                  "31m"),
            "31m");  // C1 control sequence introducer
  EXPECT_EQ(clean(std::string_view("a\0b", 3)), "ab");
}

TEST(Ascii, KeepsTheMeaningOfOurOwnSigns) {
  EXPECT_EQ(ascii("fp8 → bf16, 3 × 2 µs…"), "fp8 -> bf16, 3 x 2 us...");
  EXPECT_EQ(ascii("漢"), "?");
}

TEST(Width, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("µs"), 2);
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("e\xCC\x81"), 1);  // combining acute
  EXPECT_EQ(display_width("\xF0\x9F\x98\x80"), 2);
  EXPECT_EQ(pad_right("漢", 4), "漢  ");
  EXPECT_EQ(pad_left("µs", 4), "  µs");
  EXPECT_EQ(pad_left("longer", 3), "longer");
}

TEST(Shorten, GivesWayInTheMiddleAndNeverSplitsACharacter) {
  EXPECT_EQ(shorten_middle("abcdefgh", 8, true), "abcdefgh");
  EXPECT_EQ(shorten_middle("abcdefghij", 7, true), "abc…hij");
  EXPECT_EQ(shorten_middle("abcdefghij", 7, false), "ab...ij");
  EXPECT_EQ(shorten_middle("漢字漢字漢字", 6, true), "漢…字");
  EXPECT_EQ(shorten_middle("abcdef", 2, false), "ab");
  EXPECT_EQ(shorten_middle("abcdef", 0, false), "");
  for (int columns = 0; columns < 14; ++columns) {
    const std::string text = shorten_middle("µ漢e\xCC\x81字→abc漢漢", columns, true);
    EXPECT_LE(display_width(text), columns);
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(Wrap, BreaksAtSpacesAndWhereItMust) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefghij kl", 4), (std::vector<std::string>{"abcd", "efgh", "ij", "kl"}));
  EXPECT_EQ(wrap("漢", 1), (std::vector<std::string>{"漢"}));  // ends although nothing fits
  EXPECT_TRUE(wrap("   ", 4).empty());
}

TEST(ShortenName, KeepsWhatFits) {
  EXPECT_EQ(shorten_name("at::native::f<int>", 18, true), "at::native::f<int>");
}

TEST(ShortenName, WhatSaysLeastGoesFirst) {
  const std::string_view name = "void at::native::vectorized_kernel<4, F<int> >(int) bf16 -> fp8";
  EXPECT_EQ(shorten_name(name, 48, true), "at::native::vectorized_kernel bf16 -> fp8");
  EXPECT_EQ(shorten_name(name, 35, true), "vectorized_kernel bf16 -> fp8");
  EXPECT_EQ(shorten_name(name, 26, true), "vectorized bf16 -> fp8");
  EXPECT_EQ(shorten_name(name, 12, true), "vector…> fp8");
  EXPECT_EQ(shorten_name("vectorized_elementwise_kernel add i64", 16, true), "add i64");
  EXPECT_EQ(shorten_name("Memcpy HtoD (Pageable -> Device)", 16, true), "Memcpy HtoD");
  EXPECT_EQ(shorten_name("(not recorded in replay)", 16, true), "(not rec…replay)");
  EXPECT_EQ(shorten_name("unrolled_elementwise_kernel copy -> bf16", 34, true),
            "unrolled_elementwise copy -> bf16");
  EXPECT_EQ(shorten_name("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 34, true),
            "nccl_AllReduce_Sum_bf16_RING_LL");
}

TEST(ShortenName, OfAPlaceTheFileAndFunctionStay) {
  EXPECT_EQ(shorten_name("layers/attention/backend.py:639 forward_decode", 40, true),
            ".../backend.py:639 forward_decode");
  EXPECT_EQ(shorten_name("layers/attention/backend.py:639 forward_decode", 20, true),
            "backend.py:639");
  EXPECT_EQ(shorten_name("layers/attention/backend.py:639 forward_decode", 10, true), "…nd.py:639");
  EXPECT_EQ(shorten_name("prefill/decode", 10, true), "prefi…code");
}

TEST(ShortenName, OneLongWordKeepsItsFront) {
  EXPECT_EQ(shorten_name("nvjet_sm120_tst_mma_64x32x64_8_16x32x64_tmaAB_bz", 34, true),
            "nvjet_sm120_tst_mma_64x32x64_8…");
  EXPECT_EQ(shorten_name("nvjet_abcdefghijklmnopqrstuvwxyz", 16, false), "nvjet_a...uvwxyz");
}

TEST(ShortenName, AnyBytesFit) {
  for (const std::string_view name : {"<", "<<<<>", "f<", "f(((", "a->b", "::", "kernel_", "a::",
                                      "a.py:1", ".../ä.py:1 f", "_____________", " (", "ab (c"})
    for (int columns = 1; columns < 8; ++columns)
      EXPECT_LE(display_width(shorten_name(name, columns, true)), columns) << name;
}

}  // namespace
}  // namespace culprit::text
