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
  EXPECT_EQ(unescaped(R"(\ud83d)"), "\xff");
}

TEST(Unescape, AnInvalidEscapeMeansLiteralBackslashes) {
  for (const char* body : {R"(torch\nn\modules\linear.py(125): forward)",
                           R"(C:\Users\tom\u12.py(3): g)", R"(\u12)", R"(a\)"}) {
    std::string out;
    EXPECT_FALSE(unescape(body, out)) << body;
    EXPECT_EQ(out, body);
  }
}

TEST(Unescape, PathsWithoutOneInvalidEscape) {
  for (const char* body : {R"(C:\new\train.py(3): f)", R"(d:\u0041.py(7): f)",
                           R"(torch\nn\functional.py(9): relu)", R"(runs\fast\bench.py:12)"}) {
    std::string out;
    EXPECT_FALSE(unescape(body, out)) << body;
    EXPECT_EQ(out, body);
  }
  EXPECT_EQ(unescaped(R"(C:\\new\\train.py(3): f)"), R"(C:\new\train.py(3): f)");
  EXPECT_EQ(unescaped(R"(torch\\nn\\functional.py(9): relu)"),
            R"(torch\nn\functional.py(9): relu)");
  EXPECT_EQ(unescaped(R"(caf\u00e9.py(3): f)"), "caf\xc3\xa9.py(3): f");
  EXPECT_EQ(unescaped(R"(two lines\nmodel.py(3))"), "two lines\nmodel.py(3)");
  EXPECT_EQ(unescaped(R"(lib/x\ty.py(3): f)"), "lib/x\ty.py(3): f");
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
