#include "base/term.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace culprit::term {
namespace {

using std::chrono::milliseconds;

TEST(Color, FlagThenNoColorThenForceThenTerminal) {
  EXPECT_FALSE(use_color(ColorWhen::kNever, {.force_color = "1"}, true));
  EXPECT_TRUE(use_color(ColorWhen::kAlways, {.no_color = "1", .term = "dumb"}, false));
  EXPECT_FALSE(use_color(ColorWhen::kAuto, {.no_color = "1", .force_color = "1"}, true));
  EXPECT_TRUE(use_color(ColorWhen::kAuto, {.force_color = "1", .term = "dumb"}, false));
  EXPECT_TRUE(use_color(ColorWhen::kAuto, {.clicolor_force = "1"}, false));
  EXPECT_FALSE(use_color(ColorWhen::kAuto, {.clicolor_force = "0"}, false));
  EXPECT_FALSE(use_color(ColorWhen::kAuto, {.term = "dumb"}, true));
  EXPECT_FALSE(use_color(ColorWhen::kAuto, {.term = "xterm"}, false));
  EXPECT_TRUE(use_color(ColorWhen::kAuto, {.term = "xterm"}, true));
}

TEST(Width, ColumnsThenTerminalThenEighty) {
  EXPECT_EQ(width({.columns = "120"}, 100), 120);
  EXPECT_EQ(width({.columns = "wide"}, 100), 100);
  EXPECT_EQ(width({.columns = "-3"}, std::nullopt), 80);
  EXPECT_EQ(width({}, 3), kMinWidth);
  EXPECT_EQ(width({.columns = "99999"}, std::nullopt), kMaxWidth);
}

TEST(Locale, TheFirstVariableThatIsSetDecides) {
  EXPECT_TRUE(utf8_locale({.lang = "en_US.UTF-8"}));
  EXPECT_TRUE(utf8_locale({.lc_ctype = "C.utf8", .lang = "C"}));
  EXPECT_FALSE(utf8_locale({.lc_all = "C", .lc_ctype = "C.UTF-8", .lang = "en_US.UTF-8"}));
  EXPECT_FALSE(utf8_locale({}));
}

class ProgressLine : public ::testing::Test {
 protected:
  std::string drawn() {
    std::rewind(file_.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
  Progress::Clock::time_point start_{};
};

TEST_F(ProgressLine, ShowsNothingInTheFirstHalfSecond) {
  Progress progress(file_.get(), true, 80, start_);
  progress.show("early", start_ + milliseconds(499));
  progress.erase();
  EXPECT_EQ(drawn(), "");
}

TEST_F(ProgressLine, DrawsAtMostTenTimesASecondAndErases) {
  Progress progress(file_.get(), true, 80, start_);
  for (int ms = 500; ms < 1500; ms += 10) progress.show("x", start_ + milliseconds(ms));
  const std::string before = drawn();
  EXPECT_EQ(std::count(before.begin(), before.end(), '\r'), 10);
  std::fseek(file_.get(), 0, SEEK_END);
  progress.erase();
  EXPECT_TRUE(drawn().ends_with("\r\x1b[K"));
}

TEST_F(ProgressLine, IsSilentWhereItIsNotEnabled) {
  Progress progress(file_.get(), false, 80, start_);
  progress.show("x", start_ + milliseconds(5000));
  progress.erase();
  EXPECT_EQ(drawn(), "");
}

TEST_F(ProgressLine, IsCutToTheTerminal) {
  Progress progress(file_.get(), true, 10, start_);
  progress.show("0123456789abcdef", start_ + milliseconds(600));
  EXPECT_EQ(drawn(), "\r012...def\x1b[K");
}

}  // namespace
}  // namespace culprit::term
