// The whole-pool cast is named, proved as far as the evidence goes, and never seen in a healthy run.
#include <gtest/gtest.h>

#include <set>

#include "pool_case.h"
#include "verdict/verdict.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using known::Dtype;

class WholePoolCast : public ::testing::Test {
 protected:
  Verdict judged(const PoolCase& pool, evidence::Knowledge known = {}) {
    pool.build(builder);
    evidence = evidence::measure(builder.run(), std::move(known));
    return judge(evidence);
  }
  static evidence::Knowledge server() {
    evidence::Knowledge known;
    known.model = glm5();
    known.deployment.tp = 8;
    known.deployment.kv_dtype = Dtype::kFp8E4m3;
    known.deployment.pool_tokens = 495'488;
    known.deployment.page_size = 64;
    return known;
  }
  static PoolCase without_shapes() {
    PoolCase pool;
    pool.dims = pool.types = "";
    return pool;
  }
  RunBuilder builder;
  Evidence evidence;
};

const RuledOut* find(const Verdict& verdict, std::string_view hypothesis) {
  for (const RuledOut& ruled : verdict.ruled_out) {
    if (ruled.hypothesis == hypothesis) return &ruled;
  }
  return nullptr;
}

// 78 x (3 + 828 + 11 + 178 + 98) us = 87.204 ms a step, of which 64.584 ms are casts.
constexpr Nanos kStep = 87'204'000, kCasts = 64'584'000;

TEST_F(WholePoolCast, IsCertainWithRecordedShapes) {
  const Verdict verdict = judged(PoolCase{});
  ASSERT_EQ(verdict.suspects.size(), 1U);
  const Suspect& suspect = verdict.suspects[0];
  EXPECT_EQ(suspect.id, "whole-pool-cast");
  EXPECT_EQ(suspect.standing, Standing::kCulprit);
  EXPECT_EQ(suspect.confidence, Confidence::kCertain);
  EXPECT_EQ(suspect.ns_per_step, kCasts);
  EXPECT_EQ(suspect.exposed_ns_per_step, kCasts);
  ASSERT_TRUE(suspect.tensor);
  EXPECT_EQ(suspect.tensor->name, "kv_pool");
  EXPECT_EQ(suspect.tensor->shape, (std::vector<std::int64_t>{495'552, 1, 576}));
  EXPECT_EQ(suspect.tensor->dtype, "fp8_e4m3");
  EXPECT_EQ(suspect.tensor->elements, 285'437'952);
  EXPECT_EQ(suspect.tensor->match, "exact");
  EXPECT_NE(verdict.headline.find("whole-pool-cast"), std::string::npos);
  EXPECT_NE(suspect.claim.find("78 layers"), std::string::npos);
  EXPECT_FALSE(suspect.disproved_if.empty());
}

// Rows of a width that no model in the table has are a pool's where attention reads that tensor, too.
TEST_F(WholePoolCast, KnowsThePoolByWhatAttentionReads) {
  PoolCase pool;
  pool.dims = "[[991104, 1, 288], [991104, 1, 288]]";
  pool.types = "[\"c10::BFloat16\", \"c10::Float8_e4m3fn\"]";
  pool.attention_dims = "[[1, 4, 288], [991104, 1, 288]]";
  const Verdict verdict = judged(pool);
  ASSERT_EQ(verdict.suspects.size(), 1U);
  EXPECT_EQ(verdict.suspects[0].id, "whole-pool-cast");
  EXPECT_EQ(verdict.suspects[0].confidence, Confidence::kCertain);
  EXPECT_EQ(verdict.suspects[0].tensor->shape, (std::vector<std::int64_t>{991'104, 1, 288}));
}

TEST_F(WholePoolCast, AnyOtherTensorOfThatShapeIsNone) {
  PoolCase pool;
  pool.dims = "[[991104, 1, 288], [991104, 1, 288]]";
  pool.types = "[\"c10::BFloat16\", \"c10::Float8_e4m3fn\"]";
  pool.attention_dims = "[[1, 4, 288], [4096, 1, 288]]";
  for (const Suspect& suspect : judged(pool).suspects) EXPECT_NE(suspect.id, "whole-pool-cast");
}

TEST_F(WholePoolCast, GainIsTheRetimedStep) {
  const Suspect suspect = judged(PoolCase{}).suspects.at(0);
  EXPECT_EQ(suspect.gain.step_now, kStep);
  EXPECT_EQ(suspect.gain.low, kStep - kCasts);
  EXPECT_EQ(suspect.gain.expected, kStep - kCasts);
  EXPECT_EQ(suspect.gain.high, kStep - kCasts);
  EXPECT_EQ(suspect.gain.method, "retimed");
  EXPECT_NEAR(suspect.gain.tokens_per_s_after, 1e9 / (kStep - kCasts), 1e-6);
  EXPECT_EQ(suspect.gain.bound_by_after, "gpu");
}

TEST_F(WholePoolCast, CitesOnlyFactsThatExist) {
  const Verdict verdict = judged(PoolCase{}, server());
  std::set<std::string> ids;
  for (const evidence::Fact& fact : evidence.facts) ids.insert(fact.id);
  EXPECT_EQ(ids.size(), evidence.facts.size());
  ASSERT_FALSE(verdict.suspects[0].facts.empty());
  for (const std::string& fact : verdict.suspects[0].facts) EXPECT_EQ(ids.count(fact), 1U) << fact;
  for (const RuledOut& ruled : verdict.ruled_out) {
    EXPECT_FALSE(ruled.facts.empty()) << ruled.hypothesis;
    for (const std::string& fact : ruled.facts) EXPECT_EQ(ids.count(fact), 1U) << ruled.hypothesis;
  }
}

TEST_F(WholePoolCast, IsCertainWithTheModelAndAStatedType) {
  const Verdict verdict = judged(without_shapes(), server());
  ASSERT_EQ(verdict.suspects.size(), 1U);
  EXPECT_EQ(verdict.suspects[0].confidence, Confidence::kCertain);
  EXPECT_EQ(verdict.suspects[0].tensor->match, "exact");
  EXPECT_NE(verdict.suspects[0].claim.find("agrees"), std::string::npos);
}

TEST_F(WholePoolCast, IsLikelyAtMostWithAnInferredType) {
  evidence::Knowledge known = server();
  known.deployment.kv_dtype.reset();
  EXPECT_EQ(judged(without_shapes(), known).suspects.at(0).confidence, Confidence::kLikely);
}

TEST_F(WholePoolCast, IsLikelyAtMostWithoutAModel) {
  const Verdict verdict = judged(without_shapes());
  ASSERT_EQ(verdict.suspects.size(), 1U);
  EXPECT_EQ(verdict.suspects[0].confidence, Confidence::kLikely);
  EXPECT_EQ(verdict.suspects[0].tensor->match, "inferred");
  EXPECT_NE(verdict.suspects[0].claim.find("assumed"), std::string::npos);
}

TEST_F(WholePoolCast, IsNotCertainAgainstTheServersPool) {
  evidence::Knowledge known = server();
  known.deployment.pool_tokens = 131'072;
  const Suspect suspect = judged(without_shapes(), known).suspects.at(0);
  EXPECT_NE(suspect.confidence, Confidence::kCertain);
  EXPECT_NE(suspect.claim.find("does not agree"), std::string::npos);
}

TEST_F(WholePoolCast, IsOnlyPossibleAboveThePeak) {
  PoolCase pool;
  pool.cast_ns = 300'000;
  EXPECT_EQ(judged(pool).suspects.at(0).confidence, Confidence::kPossible);
}

TEST_F(WholePoolCast, RulesTheWeightsOutByTheirNumbers) {
  const Verdict verdict = judged(PoolCase{}, server());
  const RuledOut* w13 = find(verdict, "w13-dequant");
  ASSERT_NE(w13, nullptr);
  EXPECT_NE(w13->because.find("805,306,368"), std::string::npos);
  EXPECT_NE(w13->because.find("285,437,952"), std::string::npos);
  for (const std::string_view name :
       {"w2-dequant", "q_a-dequant", "q_b-dequant", "kv_a-dequant", "kv_b-dequant",
        "o_proj-dequant", "batch-cast", "layout-copy"}) {
    EXPECT_NE(find(verdict, name), nullptr) << name;
  }
  EXPECT_EQ(find(verdict, "kv_pool-dequant"), nullptr);
}

TEST_F(WholePoolCast, RulesSmallOwnersOutWithoutAModel) {
  const Verdict verdict = judged(PoolCase{});
  ASSERT_NE(find(verdict, "moe-gemm"), nullptr);
  EXPECT_NE(find(verdict, "moe-gemm")->because.find("15.9 %"), std::string::npos);
  EXPECT_NE(find(verdict, "comm"), nullptr);
  EXPECT_NE(find(verdict, "attention"), nullptr);
}

TEST_F(WholePoolCast, TellsHowLittleOfThePoolIsLive) {
  evidence::Knowledge known = server();
  known.deployment.active_tokens = 248;
  const Suspect suspect = judged(PoolCase{}, known).suspects.at(0);
  ASSERT_TRUE(suspect.live_fraction);
  EXPECT_NEAR(*suspect.live_fraction, 0.0005, 0.0001);
}

TEST_F(WholePoolCast, NamesKeyAndValuePools) {
  PoolCase pool;
  pool.layers = 48;
  pool.layer_count = 48;
  pool.casts_per_layer = 2;
  pool.op = "aten::_to_copy";
  pool.dims = "[[65536, 8, 128], []]";
  pool.types = "[\"c10::Float8_e4m3fn\", \"Scalar\"]";
  pool.blocks = 131'072;
  pool.cast_ns = 150'000;
  const Verdict verdict = judged(pool);
  ASSERT_EQ(verdict.suspects.size(), 1U);
  EXPECT_EQ(verdict.suspects[0].exposed_ns_per_step, 14'400'000);
  EXPECT_EQ(verdict.suspects[0].confidence, Confidence::kCertain);
  EXPECT_NE(verdict.suspects[0].claim.find("key pool and value pool"), std::string::npos);
}

TEST_F(WholePoolCast, OverlappedPartIsNotExposed) {
  PoolCase pool;
  pool.build(builder);
  const run::GroupId other = builder.group("side stream gemm", known::Owner::kGemm);
  for (const run::Step& step : builder.run().steps) {
    builder.kernel(other, step.begin + 3'000, 400'000);  // over the first cast
  }
  builder.build();
  evidence = evidence::measure(builder.run(), {});
  const Suspect suspect = judge(evidence).suspects.at(0);
  EXPECT_EQ(suspect.ns_per_step, kCasts);
  EXPECT_EQ(suspect.exposed_ns_per_step, kCasts - 400'000);
}

TEST_F(WholePoolCast, HealthyTwinIsNotAccused) {
  PoolCase pool;
  pool.casts = false;
  const Verdict verdict = judged(pool, server());
  EXPECT_TRUE(verdict.suspects.empty());
  EXPECT_TRUE(verdict.ruled_out.empty());
  EXPECT_EQ(verdict.headline.rfind("no single culprit", 0), 0U);
  ASSERT_FALSE(verdict.healthy.empty());
  EXPECT_EQ(verdict.healthy[0].what, "device-busy");
}

TEST_F(WholePoolCast, MinorWhenSmall) {
  PoolCase pool;
  pool.cast_ns = 500;
  pool.dims = "[[2048, 1, 576], [2048, 1, 576], []]";
  pool.blocks = 2304;
  builder.run().gpu.reset();
  const Verdict verdict = judged(pool);
  ASSERT_EQ(verdict.suspects.size(), 1U);
  EXPECT_EQ(verdict.suspects[0].standing, Standing::kMinor);
  EXPECT_EQ(verdict.headline.rfind("no single culprit", 0), 0U);
}

}  // namespace
}  // namespace culprit::verdict
