#include "base/near.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

const std::vector<std::string> kFlags = {"--json",     "--html", "--model",
                                         "--markdown", "--gpu",  "--tpot"};
using Names = std::vector<std::string>;

TEST(Near, OneSlipOfEachKindFindsTheName) {
  EXPECT_EQ(near_names("--jsn", kFlags), Names{"--json"});
  EXPECT_EQ(near_names("--jsonn", kFlags), Names{"--json"});
  EXPECT_EQ(near_names("--jason", kFlags), Names{"--json"});
  EXPECT_EQ(near_names("--mdoel", kFlags), Names{"--model"});
}

TEST(Near, NothingIsNearAStrangeWord) {
  EXPECT_TRUE(near_names("--frobnicate", kFlags).empty());
  EXPECT_TRUE(near_names("", kFlags).empty());
  EXPECT_TRUE(near_names("x", {}).empty());
  EXPECT_TRUE(near_names("qq", {"ab"}).empty());
}

TEST(Near, CaseDoesNotCountAndTheNearestComesFirst) {
  const Names gpus = {"H100 PCIe", "H100 SXM", "H200 SXM", "B200 SXM"};
  EXPECT_EQ(near_names("h200 sxn", gpus).front(), "H200 SXM");
  EXPECT_EQ(near_names("h100", gpus), (Names{"H100 SXM", "H100 PCIe"}));
}

TEST(Near, AtMostThreeUnlessAsked) {
  const Names same = {"aaaa1", "aaaa2", "aaaa3", "aaaa4"};
  EXPECT_EQ(near_names("aaaa", same), (Names{"aaaa1", "aaaa2", "aaaa3"}));
  EXPECT_EQ(near_names("aaaa", same, 1), Names{"aaaa1"});
}

TEST(Near, AnyLengthAndAnyBytesAreSafe) {
  const std::string endless(100'000, 'a');
  EXPECT_EQ(near_names(endless, {std::string(90'000, 'a')}).size(), 1u);
  EXPECT_TRUE(near_names(std::string("\xff\x00\xfe", 3), kFlags).empty());
}

TEST(Near, TheSentenceNamesThemOrSaysWhatElseToDo) {
  EXPECT_EQ(did_you_mean("--jsn", kFlags, "see --help"), "did you mean: --json?");
  EXPECT_EQ(did_you_mean("--frobnicate", kFlags, "see --help"), "see --help");
}

}  // namespace
}  // namespace culprit
