// Where a JSON value ends: the parser's wide steps against a slow reading byte by byte.
#include "ingest/event.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace culprit::ingest {
namespace {

// Behind the list or object that `text` begins with; 0 if it is malformed, npos if `text` ends inside it.
std::size_t slow_end(const std::string& text) {
  std::vector<char> open;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (static_cast<unsigned char>(c) < 0x20) return 0;
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      open.push_back(c);
      if (open.size() > 64) return 0;
    } else if (c == ']' || c == '}') {
      if (open.back() != (c == ']' ? '[' : '{')) return 0;
      open.pop_back();
      if (open.empty()) return i + 1;
    }
  }
  return std::string::npos;
}

std::size_t fast_end(const std::string& text) {
  const std::string padded = text + std::string(kPadding + 1, '\0');
  const EventEnd end = skip_value(padded.data(), padded.data() + text.size());
  if (end.status == Parsed::kIncomplete) return std::string::npos;
  return end.status == Parsed::kMalformed ? 0 : static_cast<std::size_t>(end.next - padded.data());
}

TEST(SkipValue, EndsWhereASlowReadingEnds) {
  for (const char* text : {"[]", "[[1, 4096], [\"a\"], []]", "[[[1], [2]], []]", "[\"]\", \"[\"]",
                           "[{\"a\": [1]}]", "[[{]", "[[1}", "[\"a\\\"]\"]", "[1,\n [2]]",
                           "[\"\xc3\xa9\"]", "[\"\t\"]", "[[1, 2]", "{\"a\": [[]]}"}) {
    EXPECT_EQ(fast_end(text), slow_end(text)) << text;
  }
}

TEST(SkipValue, AgreesOnRandomLists) {
  const std::vector<std::string> pieces = {"[",
                                           "[",
                                           "]",
                                           "]",
                                           ", ",
                                           "1",
                                           "4096, 512",
                                           "\"\"",
                                           "\"[1, 2]\"",
                                           "\"c10::BFloat16\"",
                                           "[[1, 4096], [7]]",
                                           "[], []",
                                           "{",
                                           "}",
                                           "\n",
                                           "\\",
                                           "\"",
                                           "\xc3\xa9",
                                           "\"a\\\"b\"",
                                           "\t"};
  std::mt19937 random(7);
  for (int round = 0; round < 200'000; ++round) {
    const bool clean = round % 2 == 0;  // without the rarer half, lists get longer than a step
    std::string text = "[";
    for (auto n = random() % 40; n > 0; --n)
      text += pieces[random() % (clean ? 12 : pieces.size())];
    ASSERT_EQ(fast_end(text), slow_end(text)) << text;
  }
}

}  // namespace
}  // namespace culprit::ingest
