#include "report/markdown.h"

#include <gtest/gtest.h>

namespace culprit::report {
namespace {

TEST(MarkdownText, LeavesPlainWordsAlone) {
  EXPECT_EQ(markdown_text("14 decode steps (batch 1): 93.2 ms mean; p99 95.1 ms, 57.7 % of peak"),
            "14 decode steps (batch 1): 93.2 ms mean; p99 95.1 ms, 57.7 % of peak");
  EXPECT_EQ(markdown_text("copy fp8-to-bf16 → x"), "copy fp8-to-bf16 → x");
}

TEST(MarkdownText, NothingIsMarkup) {
  EXPECT_EQ(markdown_text("a|b"), "a\\|b");
  EXPECT_EQ(markdown_text("f<int, 2>"), "f&lt;int, 2&gt;");
  EXPECT_EQ(markdown_text("&lt;script&gt;"), "&amp;lt;script&amp;gt;");
  EXPECT_EQ(markdown_text("`code` *x* _y_ ~z~"), "\\`code\\` \\*x\\* \\_y\\_ \\~z\\~");
  EXPECT_EQ(markdown_text("[a](b)"), "\\[a\\](b)");
  EXPECT_EQ(markdown_text("$x$"), "&#36;x&#36;");
  EXPECT_EQ(markdown_text("- item"), "\\- item");
  EXPECT_EQ(markdown_text("c:\\d"), "c:\\\\d");
}

TEST(MarkdownText, NobodyIsMentionedAndNothingLinked) {
  EXPECT_EQ(markdown_text("@somebody"), "@&#8203;somebody");
  EXPECT_EQ(markdown_text("fixes #12"), "fixes \\#&#8203;12");
  EXPECT_EQ(markdown_text("http://a.b"), "http:&#8203;//a.b");
  EXPECT_EQ(markdown_text("www.a.b"), "www.&#8203;a.b");
  EXPECT_EQ(markdown_text("at::native"), "at::native");
}

TEST(MarkdownText, IsOneLine) { EXPECT_EQ(markdown_text("a\nb\tc\x1b[2J"), "a b c\\[2J"); }

}  // namespace
}  // namespace culprit::report
