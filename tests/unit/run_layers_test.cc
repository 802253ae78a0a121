#include <gtest/gtest.h>

#include <fmt/format.h>

#include "run_trace.h"

namespace culprit::run {
namespace {

using testing::TraceMaker;

// A marked step from a list of kernel names, back to back.
Layers layers_of(const std::vector<std::string>& kernels, const Options& options = {}) {
  TraceMaker m;
  m.mark("step[DECODE bs=1]", 0, 1'000'000);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto at = static_cast<Nanos>(10 * i);
    m.launched(kernels[i], at, at + 100, 9);
  }
  const auto run = build(m.trace, options);
  EXPECT_TRUE(run.ok());
  return run.ok() ? run->layers : Layers{};
}

void repeat(std::vector<std::string>& kernels, int times,
            std::initializer_list<const char*> names) {
  for (int i = 0; i < times; ++i) kernels.insert(kernels.end(), names.begin(), names.end());
}

// The counts of a real Qwen3-8B decode replay: {1: 4 kernels, 36: 9, 72: 3}.
TEST(Layers, AreTheBaseOfTheCallCounts) {
  std::vector<std::string> k{"gather", "first norm"};
  repeat(k, 36,
         {"n", "n", "g1", "copy", "copy", "rope", "store", "attn", "reduce", "g2", "g3", "act",
          "qk", "qk", "g4"});
  repeat(k, 1, {"lm_head", "logits cast"});
  const Layers layers = layers_of(k);
  EXPECT_EQ(layers.count, 36);
  EXPECT_EQ(layers.how, "call-counts");
  EXPECT_EQ(layers.first_dense, std::nullopt);
}

TEST(Layers, DenseLayersBeforeTheSparseOnesAreSeen) {
  std::vector<std::string> k{"embedding"};
  repeat(k, 3, {"norm", "attn", "o", "norm", "dense gate_up", "silu", "dense down"});
  repeat(k, 75, {"norm", "attn", "o", "norm", "router", "moe 1", "silu", "moe 2", "shared"});
  repeat(k, 1, {"final", "lm_head"});
  const Layers layers = layers_of(k);
  EXPECT_EQ(layers.count, 78);
  EXPECT_EQ(layers.first_dense, 3);
}

TEST(Layers, TwoKindsOfLayersInTurnAreNotDenseAndSparse) {
  std::vector<std::string> k{"embedding"};
  for (int i = 0; i < 48; ++i) {
    repeat(k, 1, {"norm", i % 4 == 3 ? "full attn" : "linear attn", "o", "norm", "router", "moe"});
    if (i % 4 != 3) repeat(k, 1, {"conv", "gate"});
  }
  const Layers layers = layers_of(k);
  EXPECT_EQ(layers.count, 48);
  EXPECT_EQ(layers.first_dense, std::nullopt);
}

// 32-bit indexing splits a large copy into 16 launches; norms run twice, once more at the end.
TEST(Layers, SplitLaunchesAreNoExtraLayers) {
  std::vector<std::string> k{"embedding"};
  for (int i = 0; i < 61; ++i) {
    repeat(k, 16, {"cast"});
    repeat(k, 1, {"norm", "attn", "o", "norm", "up", "down"});
  }
  repeat(k, 1, {"norm", "lm_head"});
  EXPECT_EQ(layers_of(k).count, 61);
}

// A graph with three kernel families only: 24 attention, 96 GEMM, 600 small.
TEST(Layers, FewFamiliesSuffice) {
  std::vector<std::string> k;
  for (int i = 0; i < 24; ++i) {
    repeat(k, 1, {"attn"});
    repeat(k, 4, {"gemm"});
    repeat(k, 25, {"small"});
  }
  EXPECT_EQ(layers_of(k).count, 24);
}

// Qwen1.5: two norms a layer and one at the end make 49 the most common count of 24 layers.
TEST(Layers, TheMostCommonCountIsNotAlwaysTheLayers) {
  std::vector<std::string> k{"embedding"};
  for (int i = 0; i < 24; ++i)
    repeat(k, 1,
           {"pow", "mean", "rsqrt", "mul", "qkv", "rope", "attn", "o", "pow", "mean", "rsqrt",
            "mul", "up", "act", "down"});
  repeat(k, 1, {"pow", "mean", "rsqrt", "mul", "lm_head"});
  EXPECT_EQ(layers_of(k).count, 24);
}

TEST(Layers, APredictionLayerIsNotTheModelsOwnWhereTheConfigSaysSo) {
  std::vector<std::string> k;
  repeat(k, 62, {"norm", "attn", "o", "up", "down"});
  EXPECT_EQ(layers_of(k).count, 62);
  EXPECT_EQ(layers_of(k, {.config_layers = 61}).count, 61);
  EXPECT_EQ(layers_of(k, {.config_layers = 61}).how, "call-counts");
}

TEST(Layers, EvidenceBeatsTheConfig) {
  std::vector<std::string> k;
  repeat(k, 32, {"norm", "attn", "o", "up", "down"});
  EXPECT_EQ(layers_of(k, {.config_layers = 80}).count, 32);
}

TEST(Layers, TheConfigServesWhereTheCallsSayNothing) {
  const std::vector<std::string> k{"a", "b", "c", "d"};
  EXPECT_EQ(layers_of(k).count, std::nullopt);
  EXPECT_EQ(layers_of(k).how, "");
  EXPECT_EQ(layers_of(k, {.config_layers = 80}).count, 80);
  EXPECT_EQ(layers_of(k, {.config_layers = 80}).how, "config");
}

TEST(Layers, UnrelatedCountsGiveNone) {
  std::vector<std::string> k;
  int n = 3;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    repeat(k, n, {name});
    n = n * 7 / 4 + 1;
  }
  EXPECT_EQ(layers_of(k).count, std::nullopt);
}

// The layers of a marked step of these kernels, which begin 10 us apart and last 9 us.
LayerSpans spans_of(const std::vector<std::string>& kernels) {
  TraceMaker m;
  m.mark("step[DECODE bs=1]", 0, 1'000'000);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto at = static_cast<Nanos>(10 * i);
    m.launched(kernels[i], at, at + 100, 9);
  }
  const auto run = build(m.trace, {});
  EXPECT_TRUE(run.ok());
  LayerSpans spans = layer_spans(*run, run->steps.front());
  const Nanos zero = run->activities.front().begin;
  for (store::Span& span : spans.spans) span = {span.begin - zero, span.end - zero};
  return spans;
}

TEST(LayerSpans, FollowAnOrderThatRepeats) {
  std::vector<std::string> k{"gather"};
  repeat(k, 12, {"norm", "gemm", "attn", "gemm 2", "moe"});
  repeat(k, 1, {"lm_head"});
  const LayerSpans spans = spans_of(k);
  EXPECT_EQ(spans.how, "order");
  ASSERT_EQ(spans.spans.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto first = static_cast<Nanos>(1 + 5 * i);
    EXPECT_EQ(spans.spans[i].begin, 10'000 * first);
    EXPECT_EQ(spans.spans[i].end, 10'000 * (first + 4) + 9'000);
  }
}

// Dense layers before sparse ones have no period: from attention to attention, the last as long as
// the others.
TEST(LayerSpans, FollowAKernelOfEveryLayerWhereNoOrderRepeats) {
  std::vector<std::string> k{"embedding"};
  repeat(k, 3, {"attn", "o", "dense gate_up", "silu", "dense down"});
  repeat(k, 9, {"attn", "o", "router", "moe 1", "silu", "moe 2", "shared"});
  repeat(k, 1, {"final", "lm_head"});
  const LayerSpans spans = spans_of(k);
  EXPECT_EQ(spans.how, "one-kernel");
  ASSERT_EQ(spans.spans.size(), 12u);
  EXPECT_EQ(spans.spans[0], (store::Span{10'000, 60'000}));
  EXPECT_EQ(spans.spans[3], (store::Span{160'000, 230'000}));
  EXPECT_EQ(spans.spans[11].length(), 70'000);
}

TEST(LayerSpans, AreNoneWhereTheLayersAreNotKnown) {
  EXPECT_TRUE(spans_of({"a", "b", "c", "d"}).spans.empty());
}

}  // namespace
}  // namespace culprit::run
