#include <gtest/gtest.h>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::TraceMaker;

std::optional<Source> source_in(TraceMaker& maker) {
  maker.launched("k", 50, 60, 5);
  auto run = build(maker.trace, {});
  EXPECT_TRUE(run.ok());
  return source_of(*run, run->activities.front().call);
}

TEST(Source, IsTheLineThatMadeTheCallWhereTheTraceTellsIt) {
  TraceMaker m;
  m.frame("flashinfer_mla_backend.py(595): forward_decode", 10, 80, "radix_attention.py:101");
  m.frame("<built-in method to of Tensor object at 0x7f3a>", 40, 20,
          "flashinfer_mla_backend.py:639");
  const auto source = source_in(m);
  EXPECT_EQ(source,
            (Source{"flashinfer_mla_backend.py", 639, "forward_decode", true, "Tensor.to"}));
}

TEST(Source, IsTheFunctionsFirstLineWithoutCallFrom) {
  TraceMaker m;
  m.frame("/srv/sglang/srt/layers/flashinfer_mla_backend.py(595): forward_decode", 10, 80);
  m.frame("<built-in method to of Tensor object>", 40, 20);
  const auto source = source_in(m);
  EXPECT_EQ(source, (Source{"/srv/sglang/srt/layers/flashinfer_mla_backend.py", 595,
                            "forward_decode", false, "Tensor.to"}));
}

TEST(Source, SkipsTheFramework) {
  TraceMaker m;
  m.frame("my_model.py(12): decode", 0, 99);
  m.frame("nn.Module: Linear_3", 1, 97);
  m.frame("torch/nn/modules/module.py(1553): _call_impl", 2, 95, "/app/my_model.py:31");
  m.frame("/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py(125): forward", 3, 93,
          "torch/nn/modules/module.py:1562");
  m.frame("<built-in function linear>", 4, 91, "torch/nn/modules/linear.py:125");
  EXPECT_EQ(source_in(m), (Source{"my_model.py", 31, "decode", true, "linear"}));
}

TEST(Source, AModulesFrameTellsTheLineThatCalledIt) {
  TraceMaker m;
  m.frame("my_model.py(12): decode", 0, 99);
  m.frame("nn.Module: RMSNorm_0", 1, 97, "my_model.py:40");
  m.frame("torch/nn/modules/module.py(1553): _call_impl", 2, 95, "torch/nn/modules/module.py:1562");
  EXPECT_EQ(source_in(m), (Source{"my_model.py", 40, "decode", true, ""}));
}

TEST(Source, OfFrameworkCodeAloneIsItsInnermostLine) {
  TraceMaker m;
  m.frame("threading.py(1032): _bootstrap_inner", 0, 99);
  m.frame("torch/utils/data/_utils/pin_memory.py(22): _loop", 1, 97);
  m.frame("<built-in method pin_memory of Tensor object at 0x55>", 2, 90);
  EXPECT_EQ(source_in(m), (Source{"torch/utils/data/_utils/pin_memory.py", 22, "_loop", false,
                                  "Tensor.pin_memory"}));
}

TEST(Source, ALineOfAnotherFileIsNotTaken) {
  TraceMaker m;
  m.frame("a.py(5): outer", 0, 99);
  m.frame("<built-in method empty of type object at 0x1>", 2, 90, "b.py:77");
  EXPECT_EQ(source_in(m), (Source{"a.py", 5, "outer", false, "torch.empty"}));
}

TEST(Source, HostileNamesGiveNoSource) {
  TraceMaker m;
  for (const char* name : {"(): f", "x(: f", "x(99999999999999999999): f", "<built-in method ",
                           "<built-in method a of ", "<string>(1): f", ": ", "a.py(-3): f"})
    m.frame(name, 0, 99);
  EXPECT_EQ(source_in(m), std::nullopt);
}

TEST(Source, NoFramesNoSource) {
  TraceMaker m;
  EXPECT_EQ(source_in(m), std::nullopt);
}

TEST(Source, FramesOfAnotherThreadTellNothing) {
  TraceMaker m;
  const auto main_thread = m.host;
  m.host = m.thread("4001", "5005");
  m.frame("a.py(5): outer", 0, 99);
  m.host = main_thread;
  EXPECT_EQ(source_in(m), std::nullopt);
}

TEST(OpChain, RunsFromTheOutermostToTheInnermost) {
  TraceMaker m;
  m.op("aten::to", 10, 80);
  m.op("aten::_to_copy", 12, 70);
  m.op("aten::empty_strided", 14, 6);
  m.op("aten::copy_", 30, 40);
  m.launched("k", 50, 60, 5);
  auto run = build(m.trace, {});
  ASSERT_TRUE(run.ok());
  std::vector<std::string_view> names;
  for (const auto id : op_chain(*run, run->activities.front().op))
    names.push_back(m.trace.strings[id]);
  EXPECT_EQ(names, (std::vector<std::string_view>{"aten::to", "aten::_to_copy", "aten::copy_"}));
  EXPECT_TRUE(op_chain(*run, store::OpRow{}).empty());
}

TEST(Dims, AreOneShapePerArgument) {
  using Dims = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(parse_dims("[[495552,1,576],[495552,1,576],[]]"),
            (Dims{{495552, 1, 576}, {495552, 1, 576}, {}}));
  EXPECT_EQ(parse_dims("[ [1, 2] , [] ]"), (Dims{{1, 2}, {}}));
  EXPECT_EQ(parse_dims("[[[8,4],[9,4]],[],[3]]"), (Dims{{8, 4}, {}, {3}}));
  EXPECT_EQ(parse_dims("[]"), Dims{});
  for (const char* broken : {"", "[", "[[1,2]", "[[1,,2]]", "[[a]]", "[[1]] x",
                             "[[99999999999999999999]]", "[1]x", "[[[[1]]]]", "[[1 2]]"})
    EXPECT_FALSE(parse_dims(broken).has_value()) << broken;
}

TEST(Types, AreOneTextPerArgument) {
  EXPECT_EQ(parse_types(R"(["c10::BFloat16", "c10::Float8_e4m3fn","Scalar",""])"),
            (std::vector<std::string>{"c10::BFloat16", "c10::Float8_e4m3fn", "Scalar", ""}));
  EXPECT_EQ(parse_types(R"(["a\"b"])"), std::vector<std::string>{"a\"b"});
  for (const char* broken : {"", "[\"a", "[a]", "[\"a\",]", "[\"a\"] x"})
    EXPECT_FALSE(parse_types(broken).has_value()) << broken;
}

}  // namespace
}  // namespace culprit::run
