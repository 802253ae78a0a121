#include "ingest/text.h"

#include <gtest/gtest.h>

namespace culprit::ingest {
namespace {

std::string unescaped(std::string_view body) {
  std::string out;
  EXPECT_TRUE(unescape(body, out)) << body;
  return out;
}

TEST(Unescape, JsonEscapes) {
  EXPECT_EQ(unescaped(R"(a\"b\\c\/d\n\t)"), "a\"b\\c/d\n\t");
  EXPECT_EQ(unescaped(R"(\u0041\u00e9\u20ac)"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(unescaped(R"(\ud83d\ude00)"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(unescaped(R"(\ud83d)"), "\xef\xbf\xbd");
}

TEST(Unescape, AnInvalidEscapeMeansLiteralBackslashes) {
  for (const char* body : {R"(torch\nn\modules\linear.py(125): forward)",
                           R"(C:\Users\tom\u12.py(3): g)", R"(\u12)", R"(a\)"}) {
    std::string out;
    EXPECT_FALSE(unescape(body, out)) << body;
    EXPECT_EQ(out, body);
  }
}

TEST(Clean, ReplacesWhatIsNoText) {
  EXPECT_TRUE(is_clean("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* text :
       {"\xff\xfe", "a\tb", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x7f"}) {
    EXPECT_FALSE(is_clean(text)) << text;
    EXPECT_TRUE(is_clean(cleaned(text))) << text;
  }
  EXPECT_EQ(cleaned("a\xff\x62"), "a\xef\xbf\xbd\x62");
}

}  // namespace
}  // namespace culprit::ingest
