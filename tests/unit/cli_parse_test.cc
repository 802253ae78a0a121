#include "cli/parse.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/help.h"

namespace culprit::cli {
namespace {

Result<Settings> parse_words(std::vector<std::string_view> words) { return parse(words); }

std::string fault_of(std::vector<std::string_view> words) {
  const Result<Settings> settings = parse_words(std::move(words));
  if (settings.ok()) return "no fault";
  EXPECT_EQ(settings.error().code, Error::Code::kUsage);
  EXPECT_FALSE(settings.error().hint.empty());
  return settings.error().what + " | " + settings.error().hint;
}

bool holds(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

TEST(Flags, EachIsComplete) {
  std::set<std::string_view> names;
  for (const Flag& flag : flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_NE(flag.commands, 0U) << flag.name;
    EXPECT_EQ(flag.takes == Takes::kNothing, flag.value.empty()) << flag.name;
    if (flag.set == nullptr) continue;  // of a later version, or help itself
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_LE(flag.help.size(), 58U) << flag.name;  // one line of -h
    EXPECT_TRUE(flag.name == "version" || !flag.long_help.empty()) << flag.name;
    EXPECT_EQ(flag.takes == Takes::kNothing, flag.hint.empty()) << flag.name;
  }
}

TEST(Flags, EveryOneOfThisVersionIsInTheHelp) {
  const std::string short_help = help_text(Help::kShort, 80);
  const std::string long_help = help_text(Help::kLong, 80);
  for (const std::string& name : flag_names()) {
    EXPECT_TRUE(holds(short_help, name)) << name;
    EXPECT_TRUE(holds(long_help, name)) << name;
  }
  for (const std::string& name : command_names()) EXPECT_TRUE(holds(short_help, name)) << name;
}

TEST(Parse, ATraceAloneIsDiagnosed) {
  const auto settings = parse_words({"trace.json"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->command->name, "diagnose");
  EXPECT_EQ(settings->words, std::vector<std::string>{"trace.json"});
  EXPECT_FALSE(settings->json);
}

TEST(Parse, FlagsMayStandAnywhere) {
  const auto settings =
      parse_words({"--gpu", "H100 SXM", "kernels", "--all", "t.json", "--steps=3..7", "-v"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->command->name, "kernels");
  EXPECT_EQ(settings->gpu, "H100 SXM");
  EXPECT_TRUE(settings->all);
  EXPECT_TRUE(settings->verbose);
  EXPECT_EQ(settings->steps, (std::pair<std::int64_t, std::int64_t>{3, 7}));
}

TEST(Parse, TheWordAfterJsonIsAFileOnlyIfTheTraceIsGivenToo) {
  const auto alone = parse_words({"--json", "t.json"});
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(alone->json);
  EXPECT_EQ(alone->json_file, "");
  EXPECT_EQ(alone->words, std::vector<std::string>{"t.json"});

  for (const auto& words : {std::vector<std::string_view>{"t.json", "--json", "out.json"},
                            std::vector<std::string_view>{"--json", "out.json", "t.json"},
                            std::vector<std::string_view>{"t.json", "--json=out.json"},
                            std::vector<std::string_view>{"--json=out.json", "t.json"}}) {
    const auto settings = parse(words);
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->json_file, "out.json");
    EXPECT_EQ(settings->words, std::vector<std::string>{"t.json"});
  }
  const auto command = parse_words({"--json", "kernels", "t.json"});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->command->name, "kernels");
  EXPECT_EQ(command->json_file, "");
  const auto followed = parse_words({"t.json", "--json", "--all"});
  ASSERT_TRUE(followed.ok());
  EXPECT_TRUE(followed->json && followed->all && followed->json_file.empty());
}

TEST(Parse, StandardInputIsAWord) {
  const auto settings = parse_words({"-"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->words, std::vector<std::string>{"-"});
}

TEST(Parse, AfterTwoDashesEverythingIsAWord) {
  const auto settings = parse_words({"--", "--odd name.json"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->words, std::vector<std::string>{"--odd name.json"});
}

TEST(Parse, ForgeKeepsItsOwnArguments) {
  const auto settings = parse_words({"forge", "glm5", "--seed", "3", "--unknown-to-us"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->words.size(), 4U);
  EXPECT_EQ(settings->words.back(), "--unknown-to-us");
}

TEST(Parse, FaultsNameWhatWouldBeRight) {
  EXPECT_TRUE(holds(fault_of({"t.json", "--jsno"}), "--json"));
  EXPECT_TRUE(holds(fault_of({"t.json", "--gpu"}), "--gpu needs a value"));
  EXPECT_TRUE(holds(fault_of({"t.json", "--gpu", "--all"}), "--gpu needs a value"));
  EXPECT_TRUE(holds(fault_of({"t.json", "--all=yes"}), "takes no value"));
  EXPECT_TRUE(holds(fault_of({"kernles", "t.json"}), "did you mean: kernels"));
  EXPECT_TRUE(holds(fault_of({"kernels"}), "no trace given"));
  EXPECT_TRUE(holds(fault_of({"list", "gpus", "--json"}), "does not apply"));
}

TEST(Parse, WrongValuesAreRefused) {
  for (const auto& [flag, values] :
       std::vector<std::pair<std::string_view, std::vector<std::string_view>>>{
           {"--tp", {"0", "x", "8x", "9999999999999999999"}},
           {"--kv-dtype", {"fp9", "", "float99"}},
           {"--pool-tokens", {"0", "1e6", "-5"}},
           {"--active-tokens", {"none"}},
           {"--tpot", {"0", "-1", "nan", "inf", "95ms"}},
           {"--steps", {"3", "7..3", "a..b", "..", "-1..4"}},
           {"--threads", {"-1", "1025", "two"}},
           {"--color", {"sometimes"}},
           {"--time-unit", {"min"}},
           {"--width", {"39", "401", "wide"}}}) {
    for (const std::string_view value : values) {
      const std::string given = std::string(flag) + "=" + std::string(value);
      EXPECT_TRUE(holds(fault_of({"t.json", given}), std::string(flag))) << given;
    }
  }
}

TEST(Parse, RightValuesAreTaken) {
  const auto settings = parse_words(
      {"t.json", "--tp=8", "--kv-dtype=fp8_e4m3", "--pool-tokens=495552", "--active-tokens", "220",
       "--tpot=95.2", "--threads=0", "--color=never", "--time-unit=us", "--width=120", "--strict",
       "--quiet", "--model", "m", "--server-info", "s.json"});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->tp, 8);
  EXPECT_EQ(settings->kv_dtype, known::Dtype::kFp8E4m3);
  EXPECT_EQ(settings->pool_tokens, 495552);
  EXPECT_EQ(settings->active_tokens, 220);
  EXPECT_EQ(settings->tpot_ms, 95.2);
  EXPECT_EQ(settings->color, term::ColorWhen::kNever);
  EXPECT_EQ(settings->unit, text::TimeUnit::kUs);
  EXPECT_EQ(settings->width, 120);
  EXPECT_TRUE(settings->strict && settings->quiet);
  EXPECT_EQ(settings->model, "m");
  EXPECT_EQ(settings->server_info, "s.json");
  const auto automatic = parse_words({"t.json", "--kv-dtype=auto"});
  ASSERT_TRUE(automatic.ok());
  EXPECT_FALSE(automatic->kv_dtype.has_value());
}

TEST(Parse, WhatComesLaterIsRefusedByName) {
  for (const char* command : {"capture", "mcp"}) {
    EXPECT_TRUE(holds(fault_of({command, "t.json"}), "not in this version")) << command;
  }
}

TEST(Parse, SqlTakesTracesAndAQuery) {
  const auto one = parse_words({"sql", "a.json", "SELECT 1", "--csv"});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->words, (std::vector<std::string>{"a.json", "SELECT 1"}));
  EXPECT_TRUE(one->csv);
  EXPECT_EQ(parse_words({"sql", "a", "b", "-"})->words.size(), 3U);
  EXPECT_EQ(parse_words({"sql", "a", "--json", "SELECT 1"})->json_file, "")
      << "the query is needed";
  EXPECT_EQ(parse_words({"sql", "a", "SELECT 1", "--json", "x.json"})->json_file, "x.json");
  EXPECT_TRUE(parse_words({"sql", ".tables"}).ok());
  EXPECT_TRUE(parse_words({"sql", ".schema", "events"}).ok());
  EXPECT_TRUE(holds(fault_of({"sql", "a.json"}), "no query"));
  EXPECT_TRUE(holds(fault_of({"sql", "./a.json"}), "no query"));
  EXPECT_TRUE(holds(fault_of({"sql", "a", "q", "--csv", "--json"}), "two forms"));
  EXPECT_TRUE(holds(fault_of({"a.json", "--csv"}), "does not apply"));
}

TEST(Parse, SliceNeedsAFileAndOneStep) {
  const auto step = parse_words({"slice", "a.json", "--step", "17", "-o", "b.json.gz"});
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->step, 17);
  EXPECT_EQ(step->output, "b.json.gz");
  const auto steps = parse_words({"slice", "a.json", "--steps", "5-9", "--output=-"});
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->steps, (std::pair<std::int64_t, std::int64_t>{5, 9}));
  EXPECT_EQ(steps->output, "-");
  EXPECT_TRUE(parse_words({"slice", "a.json", "--layer", "0", "-o", "b"}).ok());
  EXPECT_TRUE(holds(fault_of({"slice", "a.json", "--step", "1"}), "no file"));
  EXPECT_TRUE(holds(fault_of({"slice", "a.json", "-o", "b"}), "nothing to cut"));
  EXPECT_TRUE(holds(fault_of({"slice", "a", "b", "--step", "1", "-o", "c"}), "one trace"));
  EXPECT_TRUE(
      holds(fault_of({"slice", "a", "--step", "1", "--around", "x", "-o", "c"}), "each name"));
  EXPECT_TRUE(
      holds(fault_of({"slice", "a", "--steps", "1-2", "--layer", "0", "-o", "c"}), "one step"));
  EXPECT_TRUE(holds(fault_of({"slice", "a", "--step", "-1", "-o", "c"}), "--step"));
  EXPECT_TRUE(
      holds(fault_of({"slice", "a", "--json", "--step", "1", "-o", "c"}), "does not apply"));
}

TEST(Parse, CompareTakesTwoRecordings) {
  const auto both = parse_words({"compare", "a.json", "b.json", "--fail-above", "3%"});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->words, (std::vector<std::string>{"a.json", "b.json"}));
  EXPECT_DOUBLE_EQ(both->fail_above.value_or(0), 0.03);
  EXPECT_DOUBLE_EQ(parse_words({"compare", "a", "b", "--fail-above=0.5"})->fail_above.value_or(0),
                   0.005);
  EXPECT_TRUE(holds(fault_of({"compare", "a.json"}), "needs two"));
  EXPECT_TRUE(holds(fault_of({"compare", "a", "b", "c"}), "takes two"));
  EXPECT_TRUE(holds(fault_of({"compare", "a", "b", "--fail-above", "much"}), "not right"));
  EXPECT_TRUE(holds(fault_of({"compare", "a", "b", "--fail-above", "-3%"}), "needs a value"));
  EXPECT_TRUE(holds(fault_of({"t.json", "--fail-above", "3%"}), "does not apply"));
  EXPECT_TRUE(holds(fault_of({"whatif", "t.json", "--graph", "--markdown"}), "does not apply"));
}

// `--json X --markdown Y`: X and Y are files once both recordings are there, else they are these.
TEST(Parse, OptionalValuesOfCompareGiveWayToItsRecordings) {
  const auto words = [](const std::vector<std::string_view>& args) {
    const auto settings = parse_words(args);
    return settings.ok() ? settings->words : std::vector<std::string>{};
  };
  const std::vector<std::string> both{"a", "b"};
  EXPECT_EQ(words({"compare", "--json", "a", "b"}), both);
  EXPECT_EQ(words({"compare", "a", "--json", "b"}), both);
  EXPECT_EQ(words({"compare", "--json", "a", "--markdown", "b"}), both);
  const auto files = parse_words({"compare", "--json", "x", "a", "b", "--markdown", "y"});
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->words, both);
  EXPECT_EQ(files->json_file, "x");
  EXPECT_EQ(files->markdown_file, "y");
  const auto one = parse_words({"compare", "--json", "a", "b", "--markdown", "y"});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->words, both);
  EXPECT_EQ(one->markdown_file, "y");
}

TEST(Parse, FloorNeedsNoTraceAndMayHaveOne) {
  const auto alone =
      parse_words({"floor", "--model", "m", "--gpu", "g", "--tp", "8", "--ep", "4",
                   "--attention-dp", "2", "--batch", "32", "--context", "4000", "--kv", "fp8"});
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(alone->words.empty());
  EXPECT_EQ(alone->ep, 4);
  EXPECT_EQ(alone->attention_dp, 2);
  EXPECT_EQ(alone->batch, 32);
  EXPECT_EQ(alone->context, 4000);
  EXPECT_EQ(alone->kv_dtype, known::Dtype::kFp8E4m3);
  EXPECT_EQ(parse_words({"floor", "t.json", "--model", "m"})->words.size(), 1u);
  EXPECT_TRUE(holds(fault_of({"t.json", "--batch", "3"}), "does not apply"));
}

TEST(Parse, HelpAndVersionNeedNoTrace) {
  for (const auto& words :
       {std::vector<std::string_view>{"--help"}, std::vector<std::string_view>{"-h"},
        std::vector<std::string_view>{"t.json", "-h"}}) {
    const auto settings = parse(words);
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->command->id, CommandId::kHelp);
    EXPECT_NE(settings->help, Help::kNone);
    EXPECT_TRUE(settings->words.empty());
  }
  const auto of_command = parse_words({"gaps", "--help"});
  ASSERT_TRUE(of_command.ok());
  EXPECT_EQ(of_command->command->name, "gaps");
  const auto version = parse_words({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_TRUE(version->version);
}

TEST(Help, PagesStayWithinTheWidth) {
  for (const int width : {60, 80, 120}) {
    std::string pages = help_text(Help::kShort, width) + help_text(Help::kLong, width);
    for (const Command& command : commands()) pages += command_help(command, Help::kLong, width);
    std::size_t begin = 0;
    for (std::size_t end; (end = pages.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = pages.substr(begin, end - begin);
      const bool fixed = line.starts_with("usage:") || line.starts_with("example:") ||
                         line.starts_with("  culprit ");
      EXPECT_TRUE(fixed || text::display_width(line) <= width) << line;
    }
  }
  std::size_t usage_lines = 0;
  for (const char c : usage_text()) usage_lines += c == '\n';
  EXPECT_EQ(usage_lines, 8U);
}

}  // namespace
}  // namespace culprit::cli
