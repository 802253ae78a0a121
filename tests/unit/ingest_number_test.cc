#include "ingest/number.h"

#include <gtest/gtest.h>

#include <string>

namespace culprit::ingest {
namespace {

TEST(ParseMicros, EveryWrittenForm) {
  EXPECT_EQ(parse_micros("0"), 0);
  EXPECT_EQ(parse_micros("123"), 123'000);
  EXPECT_EQ(parse_micros("123.456"), 123'456);
  EXPECT_EQ(parse_micros("0.001"), 1);
  EXPECT_EQ(parse_micros("1.5"), 1'500);
  EXPECT_EQ(parse_micros("-1"), -1'000);
  EXPECT_EQ(parse_micros("4.9e12"), 4'900'000'000'000'000);
  EXPECT_EQ(parse_micros("1E-3"), 1);
  EXPECT_EQ(parse_micros("+2.0"), 2'000);
}

TEST(ParseMicros, KeepsWhatADoubleWouldLose) {
  EXPECT_EQ(parse_micros("1700000000000123.457"), 1'700'000'000'000'123'457);
  EXPECT_EQ(
      parse_micros("1700000000000124.457").value() - parse_micros("1700000000000123.457").value(),
      1'000);
}

TEST(ParseMicros, RoundsBeyondTheNanosecond) {
  EXPECT_EQ(parse_micros("1.0004"), 1'000);
  EXPECT_EQ(parse_micros("1.0005"), 1'001);
  EXPECT_EQ(parse_micros("-1.0005"), -1'001);
  EXPECT_EQ(parse_micros("123.45600000000002"), 123'456);
  EXPECT_EQ(parse_micros("0.99999999999999999999999999"), 1'000);
}

// A fourth decimal of 0 takes the general way: both must agree at every length.
TEST(ParseMicros, UsualFormAgreesWithTheGeneralOne) {
  const std::string digits = "9081726354";
  for (std::size_t whole = 1; whole <= 15; ++whole) {
    for (std::size_t wrong = 0; wrong <= whole + 4; ++wrong) {
      std::string text;
      for (std::size_t i = 0; i < whole + 3; ++i) text += digits[i * 7 % 10];
      text.insert(whole, ".");
      EXPECT_EQ(parse_micros(text), parse_micros(text + "0")) << text;
      for (const char bad : {'/', ':', ' ', '\xb0'}) {
        std::string damaged = text;
        damaged[wrong % text.size()] = bad;
        EXPECT_FALSE(parse_micros(damaged)) << damaged;
      }
    }
  }
}

TEST(ParseMicros, RefusesWhatIsNoTime) {
  for (const char* text : {"", "-", ".", "12,5", "inf", "NaN", "1e", "1e99", "0x10", "1 2",
                           "99999999999999999999", "1.2.3"}) {
    EXPECT_FALSE(parse_micros(text)) << text;
  }
}

TEST(ParseInteger, WholeNumbersOnly) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("9007199254740993"), 9007199254740993);
  EXPECT_EQ(parse_integer("-5"), -5);
  EXPECT_EQ(parse_integer("2.0"), 2);
  EXPECT_EQ(parse_integer("1e3"), 1000);
  for (const char* text : {"", "1.5", "18446744073709551615", "a", "1a"})
    EXPECT_FALSE(parse_integer(text)) << text;
}

}  // namespace
}  // namespace culprit::ingest
