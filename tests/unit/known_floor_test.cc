// Floors against the sums of public arithmetic: which bytes a step reads, and what bounds it.
#include "known/floor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace culprit::known {
namespace {

FloorCase case_of(const char* model, const char* gpu, std::int64_t tp) {
  FloorCase given;
  given.model = *load_model(model);
  given.gpu = *find_gpu(gpu);
  given.deployment.tp = tp;
  given.deployment.batch = 1;
  return given;
}

const FloorPart* find(const Floor& floor, Component component) {
  for (const FloorPart& part : floor.parts) {
    if (part.component == component) return &part;
  }
  return nullptr;
}

double gb(const Floor& floor, Component component) {
  const FloorPart* part = find(floor, component);
  return part == nullptr ? 0 : part->bytes / 1e9;
}

// NVFP4 experts, BF16 attention: 14.71 + 27.21 + 1.90 + 0.24 = 44.1 GB once, 9.19 GB on each of 8.
TEST(Floor, Glm5AtTp8ReadsThePublishedBytes) {
  const auto floor = floor_of(case_of("nvidia/GLM-5-NVFP4", "B200", 8));
  ASSERT_TRUE(floor.ok());
  EXPECT_NEAR(floor->weight_bytes_once / 1e9, 44.1, 0.05);
  EXPECT_NEAR(floor->weight_bytes / 1e9, 9.19, 0.005);
  EXPECT_NEAR(gb(*floor, Component::kAttention) + gb(*floor, Component::kIndexer), 6.88, 0.005);
  EXPECT_NEAR(gb(*floor, Component::kExperts) + gb(*floor, Component::kSharedExperts) +
                  gb(*floor, Component::kDenseMlp),
              1.84, 0.005);
  EXPECT_NEAR(gb(*floor, Component::kLmHead), 0.24, 0.005);
  EXPECT_NEAR(gb(*floor, Component::kRouter), 0.24, 0.005);
  EXPECT_NEAR(floor->held_bytes / 1e9, 58.8, 0.2);

  const auto whole = floor_of(case_of("nvidia/GLM-5-NVFP4", "B200", 1));
  EXPECT_NEAR(gb(*whole, Component::kAttention) + gb(*whole, Component::kIndexer), 27.21, 0.005);
  EXPECT_NEAR(whole->held_bytes / 1e9, 440.9, 0.1);
  EXPECT_EQ(find(*whole, Component::kCommBytes), nullptr);
}

// FP8 with LM head and router in BF16: 37.66 GB once, 5.70 GB on each of 8.
TEST(Floor, DeepSeekV3AtTp8ReadsThePublishedBytes) {
  const auto floor = floor_of(case_of("deepseek-ai/DeepSeek-V3", "H200", 8));
  ASSERT_TRUE(floor.ok());
  EXPECT_NEAR(floor->weight_bytes_once / 1e9, 37.66, 0.005);
  EXPECT_NEAR(floor->weight_bytes / 1e9, 5.70, 0.005);
}

// 9.19 GB at 1,792 GB/s are 5.13 ms, at 7,700 GB/s 1.19 ms; the all-reduces come on top.
// Even routing is an expectation: at the least a batch hits the experts of one token.
TEST(Floor, AlikeTokensHitAsFewExpertsAsOne) {
  FloorCase given = case_of("zai-org/GLM-5", "B200", 8);
  const Nanos one = find(*floor_of(given), Component::kExperts)->ns;
  given.deployment.batch = 32;
  const auto floor = floor_of(given);
  const FloorPart* experts = find(*floor, Component::kExperts);
  EXPECT_NEAR(static_cast<double>(experts->least), static_cast<double>(one), 2);
  EXPECT_GT(experts->ns, 20 * one);
  EXPECT_EQ(find(*floor, Component::kAttention)->least, find(*floor, Component::kAttention)->ns);
  given.deployment.ep = 8;  // all on another GPU
  EXPECT_EQ(find(*floor_of(given), Component::kExperts)->least, 0);
}

TEST(Floor, TimesAreBytesOverBandwidthAtBatchOne) {
  for (const auto& [gpu, ms] :
       {std::pair{"RTX PRO 6000 Blackwell Server", 5.13}, {"B200", 1.194}}) {
    const auto floor = floor_of(case_of("nvidia/GLM-5-NVFP4", gpu, 8));
    Nanos weights = 0, all = 0;
    for (const FloorPart& part : floor->parts) {
      all += part.ns;
      if (!is_weights(part.component)) continue;
      weights += part.ns;
      EXPECT_EQ(part.bound, FloorBound::kMemory);
    }
    EXPECT_NEAR(static_cast<double>(weights) / 1e6, ms, 0.005) << gpu;
    EXPECT_EQ(all, floor->step);
  }
}

// 8, 57.4, 163.3 and 251.6 of 256 experts for 1, 8, 32 and 128 tokens.
TEST(Floor, ExpertsHitFollowTheBatch) {
  const double one = 8;
  double first = 0;
  for (const auto& [tokens, hit] : {std::pair{1, 8.0}, {8, 57.4}, {32, 163.3}, {128, 251.6}}) {
    FloorCase given = case_of("zai-org/GLM-5", "B200", 8);
    given.deployment.batch = tokens;
    const double bytes = gb(*floor_of(given), Component::kExperts);
    if (tokens == 1) first = bytes;
    EXPECT_NEAR(bytes / first * one, hit, 0.05) << tokens;
  }
}

// 78 x 576 = 44,928 B a token in FP8; with 132 B of index keys 55,224 B; attention reads 2048 tokens.
TEST(Floor, SparseAttentionReadsItsTopTokensAndAllIndexKeys) {
  FloorCase given = case_of("nvidia/GLM-5-NVFP4", "B200", 8);
  given.context = 1000;
  auto floor = floor_of(given);
  EXPECT_DOUBLE_EQ(find(*floor, Component::kKvCache)->bytes, 44'928.0 * 1000);
  EXPECT_DOUBLE_EQ(find(*floor, Component::kIndexCache)->bytes, (55'224.0 - 44'928) * 1000);
  given.context = 100'000;
  floor = floor_of(given);
  EXPECT_DOUBLE_EQ(find(*floor, Component::kKvCache)->bytes, 44'928.0 * 2048);
  EXPECT_DOUBLE_EQ(find(*floor, Component::kIndexCache)->bytes, (55'224.0 - 44'928) * 100'000);
}

TEST(Floor, GroupedHeadsAreSharedAndWindowsReadNoMore) {
  FloorCase given = case_of("Qwen3-8B", "H100 SXM", 2);
  given.context = 4096;
  // 36 layers x K and V x 4 heads x 128 x 2 bytes
  EXPECT_DOUBLE_EQ(find(*floor_of(given), Component::kKvCache)->bytes, 36.0 * 2 * 512 * 2 * 4096);
  given = case_of("openai/gpt-oss-120b", "H100 SXM", 1);
  given.context = 4096;
  // 8 heads x 64, K and V, BF16: 18 layers see 4096 tokens and 18 see 128
  EXPECT_DOUBLE_EQ(find(*floor_of(given), Component::kKvCache)->bytes,
                   2.0 * 512 * 2 * 18 * (4096 + 128));
}

TEST(Floor, LargeBatchesAreBoundByArithmetic) {
  FloorCase given = case_of("meta-llama/Meta-Llama-3.1-8B", "H100 SXM", 1);
  given.deployment.batch = 2048;
  const auto floor = floor_of(given);
  const FloorPart* mlp = find(*floor, Component::kDenseMlp);
  EXPECT_EQ(mlp->bound, FloorBound::kCompute);
  // 2 x 2048 tokens x 3 x 4096 x 14336 x 32 layers over 989 TFLOP/s
  EXPECT_NEAR(static_cast<double>(mlp->ns), 2 * 2048.0 * 3 * 4096 * 14336 * 32 / 989e3, 10);
}

// 157 messages of 12,288 B from 7 peers; at 512 tokens the two-shot way is the faster one.
TEST(Floor, AllReducesTakeTheFasterWay) {
  const auto small = floor_of(case_of("zai-org/GLM-5", "B200", 8));
  const FloorPart* bytes = find(*small, Component::kCommBytes);
  EXPECT_DOUBLE_EQ(bytes->bytes, 157.0 * 7 * 12'288);
  EXPECT_EQ(find(*small, Component::kCommLatency)->ns, 157 * 4'000);
  FloorCase given = case_of("zai-org/GLM-5", "B200", 8);
  given.deployment.batch = 1024;
  const auto large = floor_of(given);
  EXPECT_DOUBLE_EQ(find(*large, Component::kCommBytes)->bytes, 157.0 * 1.75 * 12'288 * 1024);
  EXPECT_EQ(find(*large, Component::kCommLatency)->ns, 157 * 8'000);
  EXPECT_GE(find(*large, Component::kCommBytes)->ns + find(*large, Component::kCommLatency)->ns,
            find(*small, Component::kCommBytes)->ns + find(*small, Component::kCommLatency)->ns);
}

TEST(Floor, ExpertParallelRanksReadWholeExpertsOfTheirOwn) {
  FloorCase given = case_of("deepseek-ai/DeepSeek-V3", "H200", 8);
  const double sharded = gb(*floor_of(given), Component::kExperts);
  given.deployment.ep = 8;
  given.deployment.attention_dp = 8;
  given.deployment.batch = 8;
  const auto floor = floor_of(given);
  EXPECT_NEAR(gb(*floor, Component::kExperts), sharded * 57.4 / 8, 0.01);
  // attention whole on every GPU, for one token each
  EXPECT_NEAR(gb(*floor, Component::kAttention), 11.4134, 0.001);
}

TEST(Floor, DeploymentsThatNoEngineRunsAreErrors) {
  for (const auto& [tp, ep, dp] : {std::tuple{7, 1, 1}, {8, 3, 1}, {8, 1, 3}, {0, 1, 1}}) {
    FloorCase given = case_of("nvidia/GLM-5-NVFP4", "B200", tp);
    given.deployment.ep = ep;
    given.deployment.attention_dp = dp;
    const auto floor = floor_of(given);
    ASSERT_FALSE(floor.ok()) << tp << ' ' << ep << ' ' << dp;
    EXPECT_EQ(floor.error().code, Error::Code::kUsage);
    EXPECT_NE(floor.error().hint, "");
  }
  FloorCase dense = case_of("Qwen3-8B", "B200", 8);
  dense.deployment.ep = 8;
  EXPECT_FALSE(floor_of(dense).ok());
}

// Whatever the row: a figure or an error, never a negative or infinite one, and more batch, context
// or layers never make it lower.
TEST(Floor, EveryModelOnEveryGpuHasASoundFloor) {
  for (const std::string& name : model_names()) {
    for (const Gpu& gpu : gpus()) {
      FloorCase given;
      given.model = *load_model(name);
      given.gpu = gpu;
      Nanos before = 0;
      for (const std::int64_t batch : {1, 16, 4096}) {
        given.deployment.batch = batch;
        given.context = 100 * batch;
        const auto floor = floor_of(given);
        ASSERT_TRUE(floor.ok()) << name << ' ' << gpu.name;
        EXPECT_GT(floor->step, before) << name << ' ' << gpu.name;
        before = floor->step;
      }
    }
  }
}

}  // namespace
}  // namespace culprit::known
