// The strict reader against a slow one, on texts that are spoilt in every way.
#include "ingest/strict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace culprit::ingest {
namespace {

constexpr std::string_view kEvent =
    R"( {"ph": "X", "name": "void gemm<\u00e9\ud83d\ude00>(\"a\\b\") é😀", "ts": -10.25e+0, "args": {"grid": [4, 1, 1],
 "e": {}, "l": [], "t": [true, false, null], "n": [0, -0, 0.5, 1E-2, 12]}} )";

TEST(Strict, TakesWhatIsJson) {
  for (const std::string_view text :
       {kEvent, std::string_view("[]"), std::string_view("\"\""), std::string_view(" 0 "),
        std::string_view("[[[{\"a\":[]}]]]")})
    EXPECT_TRUE(is_strict_json(text)) << text;
}

TEST(Strict, RefusesWhatIsNone) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "[1 2]",
                                      "03",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "-",
                                      "1e",
                                      "NaN",
                                      "inf",
                                      "Infinity",
                                      "'a'",
                                      "{a:1}",
                                      "[1]]",
                                      "[1}",
                                      "{\"a\"}",
                                      "\"\\q\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"a\nb\"",
                                      "\"a",
                                      "tru",
                                      "nullx",
                                      "[1],"})
    EXPECT_FALSE(is_strict_json(text)) << text;
  EXPECT_FALSE(is_strict_json(std::string_view("\"a\0b\"", 5)));
}

TEST(Strict, AgreesWithASlowReaderOnSpoiltTexts) {
  std::mt19937 random(7);
  constexpr std::string_view kBytes("\"\\{}[],:0e.-+tnu \n\x01\x80\xc3\xe2\xed\xf0\xff", 25);
  int refused = 0;
  constexpr int kTexts = 100'000;
  for (int i = 0; i < kTexts; ++i) {
    std::string text(kEvent);
    for (auto k = random() % 3; k < 3; ++k) {
      const std::size_t at = random() % text.size();
      const char byte = kBytes[random() % kBytes.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else if (random() % 2 == 0) {
        text[at] = byte;
      } else {
        text.insert(at, 1, byte);
      }
    }
    const bool slow = nlohmann::json::accept(text);
    ASSERT_EQ(is_strict_json(text), slow) << text;
    refused += slow ? 0 : 1;
  }
  EXPECT_GT(refused, kTexts / 4);
  EXPECT_LT(refused, kTexts);
}

}  // namespace
}  // namespace culprit::ingest
