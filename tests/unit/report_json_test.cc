#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/json_writer.h"
#include "report/note_guide.h"
#include "report/report.h"
#include "unit/sample_answer.h"

namespace culprit::report {
namespace {

using nlohmann::json;

json document(const Answer& answer) { return json::parse(render_json(answer)); }

TEST(Json, HoldsTheCaseInIntegersOfNanoseconds) {
  const test::SampleAnswer sample = test::sample_answer();
  const json doc = document(sample.answer);
  EXPECT_EQ(doc["schema_version"], 1);
  EXPECT_EQ(doc["tool"]["name"], "culprit");
  EXPECT_EQ(doc["inputs"][0]["events"], 1641756);
  EXPECT_EQ(doc["steps"]["mean_ns"], 93240000);
  EXPECT_TRUE(doc["steps"]["mean_ns"].is_number_integer());
  EXPECT_EQ(doc["steps"]["excluded"],
            json::parse(R"([{"index":0,"why":"partial"},{"index":29,"why":"partial"}])"));
  EXPECT_EQ(doc["steps"]["groups"][0]["batch"], 1);
  EXPECT_EQ(doc["steps"]["groups"][0]["count"], 28);
  EXPECT_EQ(doc["device"]["arch"], "sm_120");
  const json& cast = doc["kernels"][0];
  EXPECT_EQ(cast["elements"]["exact"], 285437952);
  EXPECT_EQ(cast["grid"], json::parse("[557496,1,1]"));
  EXPECT_EQ(cast["dtype_in"], "fp8_e4m3");
  EXPECT_EQ(cast["launch"], json::parse(R"({"api":"cudaLaunchKernel","thread":31742})"));
  EXPECT_EQ(cast["source"]["line"], 639);
  EXPECT_EQ(doc["suspects"][0]["id"], "whole-pool-cast");
  EXPECT_EQ(doc["suspects"][0]["rank"], 1);
  EXPECT_EQ(doc["suspects"][0]["gain"]["step_ns_after"]["expected"], 28640000);
  EXPECT_EQ(doc["ruled_out"][0]["hypothesis"], "w13-dequant");
}

TEST(Json, BudgetAddsUpToTheStep) {
  const test::SampleAnswer sample = test::sample_answer();
  const json doc = document(sample.answer);
  std::int64_t sum = 0;
  for (const json& row : doc["budget"]) sum += row["ns_per_step"].get<std::int64_t>();
  EXPECT_EQ(sum, doc["steps"]["mean_ns"].get<std::int64_t>());
}

TEST(Json, SharesKeepSixDigits) {
  const test::SampleAnswer sample = test::sample_answer();
  const json doc = document(sample.answer);
  for (std::size_t i = 0; i < doc["budget"].size(); ++i) {
    EXPECT_NEAR(doc["budget"][i]["share"].get<double>(), sample.evidence->budget[i].share, 5e-7);
  }
}

TEST(Json, WhatIsUnknownIsNullNeverZero) {
  test::SampleAnswer sample = test::sample_answer();
  sample.evidence->peak = {};
  sample.run->layers = {};
  sample.run->properties = {};
  const json doc = document(sample.answer);
  const json& nccl = doc["kernels"][1];
  for (const char* key : {"elements", "dtype_in", "dtype_out", "bytes", "gbps", "of_peak", "op",
                          "launch", "source"}) {
    EXPECT_TRUE(nccl.at(key).is_null()) << key;
  }
  for (const char* key : {"name", "arch", "sms", "peak_gbps", "peak_source"}) {
    EXPECT_TRUE(doc["device"].at(key).is_null()) << key;
  }
  EXPECT_TRUE(doc["model"]["source"].is_null());
  EXPECT_TRUE(doc["layers"]["count"].is_null());
}

TEST(Json, UnusableInputHasTheSameShapeAndTheReason) {
  const test::SampleAnswer sample = test::sample_answer();
  Answer refused;
  refused.path = "x.json";
  refused.failure =
      Error{Error::Code::kBadInput, "it is no trace", "x.json: byte 0", "", "not-a-trace"};
  const json doc = document(refused);
  EXPECT_EQ(doc["quality"]["usable"], false);
  EXPECT_EQ(doc["quality"]["notes"][0]["code"], "not-a-trace");
  EXPECT_EQ(doc["quality"]["notes"][0]["severity"], "unusable");
  EXPECT_TRUE(doc["suspects"].empty());
  EXPECT_TRUE(doc["kernels"].empty());
  EXPECT_TRUE(doc["ruled_out"].empty());
  const json full = document(sample.answer);
  for (const auto& member : full.items()) EXPECT_TRUE(doc.contains(member.key())) << member.key();
}

TEST(Json, AFailureThatANoteNamesAlreadyRaisesThatNote) {
  test::SampleAnswer sample = test::sample_answer();
  sample.answer.run = nullptr;
  sample.answer.failure =
      Error{Error::Code::kUnusable, "too much is missing", "rank0", "", "kernels-missing"};
  const json doc = document(sample.answer);
  ASSERT_EQ(doc["quality"]["notes"].size(), 2U);
  EXPECT_EQ(doc["quality"]["notes"][1]["severity"], "unusable");
  EXPECT_EQ(doc["quality"]["notes"][1]["count"], 60);
  EXPECT_EQ(doc["inputs"][0]["events"], 1641756);
}

TEST(Json, IsValidUtf8WhateverTheNamesHold) {
  test::SampleAnswer sample = test::sample_answer();
  sample.answer.path = "\xFF\xC0\xAF\x01\"\\\n\xED\xA0\x80.json";
  sample.verdict->headline = std::string("nul\0byte", 8);
  const std::string text = render_json(sample.answer);
  EXPECT_EQ(text::valid_utf8(text), text);
  const json doc = json::parse(text);
  EXPECT_EQ(doc["headline"], std::string("nul\0byte", 8));
}

TEST(Json, SameAnswerSameBytes) {
  EXPECT_EQ(render_json(test::sample_answer().answer), render_json(test::sample_answer().answer));
}

TEST(Json, TableCommandsAddTheirRows) {
  const test::SampleAnswer sample = test::sample_answer();
  const json doc = json::parse(render_json(sample.answer, Table::kSteps));
  EXPECT_EQ(doc["table"]["name"], "steps");
  EXPECT_EQ(doc["table"]["rows"].size(), 30U);
  EXPECT_EQ(doc["table"]["rows"][3]["ns"], 93240000);
  EXPECT_FALSE(document(sample.answer).contains("table"));
}

TEST(JsonWriter, NumbersAreJsonNumbers) {
  JsonWriter w;
  w.begin_array({}, JsonLayout::kLine);
  w.number({}, 78.0);
  w.number({}, 1.0 / 3);
  w.number({}, 1e-9);
  w.number({}, std::numeric_limits<double>::infinity());
  w.number({}, 9007199254740991.0, 15);
  w.integer({}, std::numeric_limits<std::int64_t>::min());
  w.integer({}, std::nullopt);
  w.end();
  EXPECT_EQ(w.take(),
            "[78, 0.333333, 1e-09, null, 9007199254740991, -9223372036854775808, null]\n");
}

TEST(JsonWriter, LinesStayOneLineAndBlocksIndent) {
  JsonWriter w;
  w.begin_object({}, JsonLayout::kBlock);
  w.begin_object("a", JsonLayout::kLine);
  w.begin_array("b", JsonLayout::kBlock);
  w.text({}, "x");
  w.end();
  w.end();
  w.begin_array("c", JsonLayout::kBlock);
  w.end();
  w.end();
  EXPECT_EQ(w.take(), "{\n  \"a\": {\"b\": [\"x\"]},\n  \"c\": []\n}\n");
}

TEST(NoteGuide, EveryCodeHasAMeaningAndARemedy) {
  for (const NoteGuide& note : note_guide()) {
    EXPECT_FALSE(note.meaning.empty()) << note.code;
    EXPECT_FALSE(note.remedy.empty()) << note.code;
    EXPECT_EQ(find_note_guide(note.code), &note);
  }
  EXPECT_EQ(find_note_guide("no-such-code"), nullptr);
}

TEST(JsonWriter, TightValuesHaveNoBlanksAndLongTextsLoseTheirMiddle) {
  JsonWriter w(8);
  w.begin_object({}, JsonLayout::kTight);
  w.begin_array("n", JsonLayout::kBlock);
  for (int i = 0; i < 3; ++i) w.integer({}, i);
  w.end();
  w.text("t", "12345678");
  w.text("u", "123456789");
  w.end();
  EXPECT_EQ(w.take(), "{\"n\": [0,1,2],\"t\": \"12345678\",\"u\": \"1234 … 6789\"}\n");
}

TEST(Json, LimitsLeaveOutTheEndsOfLists) {
  const test::SampleAnswer sample = test::sample_answer();
  const json all = document(sample.answer);
  const JsonLimits limits{.kernels = 2, .kernels_of_suspect = 0, .facts = 1, .text = 1'000};
  const json few = json::parse(render_json(sample.answer, std::nullopt, limits));
  ASSERT_GT(all["kernels"].size(), 2u);
  ASSERT_GT(all["facts"].size(), 1u);
  EXPECT_EQ(few["kernels"].size(), 2u);
  EXPECT_EQ(few["kernels"][0], all["kernels"][0]);
  EXPECT_EQ(few["facts"].size(), 1u);
  EXPECT_TRUE(few["suspects"][0]["kernels"].empty());
  EXPECT_EQ(few["budget"], all["budget"]);
}

}  // namespace
}  // namespace culprit::report
