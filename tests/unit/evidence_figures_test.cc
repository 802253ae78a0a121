// What is known of a kernel group: elements, element types, bytes, and what it fits.
#include <gtest/gtest.h>

#include "evidence/measures.h"
#include "evidence/pool.h"
#include "pool_case.h"

namespace culprit::evidence {
namespace {

using known::Dtype;
using known::Owner;

constexpr std::int64_t kPoolElements = 285'437'952;  // 495,552 x 576

TEST(Figures, RecordedShapesGiveElementsTypesAndBytes) {
  RunBuilder builder;
  PoolCase{}.build(builder);
  const Evidence evidence = measure(builder.run(), {});
  const KernelFigures& cast = evidence.kernels.front();
  EXPECT_EQ(cast.calls_per_step, 78.0);
  EXPECT_EQ(cast.ns_per_step, 78 * 828'000);
  EXPECT_EQ(cast.exposed_ns_per_step, 78 * 828'000);
  EXPECT_EQ(cast.avg_ns, 828'000);
  ASSERT_TRUE(cast.elements);
  EXPECT_EQ(cast.elements->min, 285'437'441);
  EXPECT_EQ(cast.elements->max, kPoolElements);
  EXPECT_EQ(cast.elements_exact, kPoolElements);
  EXPECT_EQ(cast.elements_how, "dims");
  EXPECT_EQ(cast.dtype_in, Dtype::kFp8E4m3);
  EXPECT_EQ(cast.dtype_in_how, "dims");
  EXPECT_EQ(cast.dtype_out, Dtype::kBf16);
  EXPECT_EQ(cast.bytes, 856'313'856);
  EXPECT_NEAR(*cast.gbps, 1034, 1);
  EXPECT_NEAR(*cast.of_peak, 0.577, 0.001);
  EXPECT_EQ(cast.regime, Regime::kMemory);
}

TEST(Figures, WithoutShapesOnlyTheIntervalIsKnown) {
  RunBuilder builder;
  PoolCase pool;
  pool.dims = pool.types = "";
  pool.layer_count = std::nullopt;
  pool.cast_before_gemm = true;  // nothing says it is a pool
  pool.build(builder);
  const Evidence evidence = measure(builder.run(), {});
  const KernelFigures& cast = evidence.kernels.front();
  EXPECT_FALSE(cast.elements_exact);
  EXPECT_EQ(cast.elements_how, "grid");
  EXPECT_EQ(cast.dtype_in, Dtype::kUnknown);
  EXPECT_FALSE(cast.bytes);
  EXPECT_FALSE(cast.of_peak);
}

TEST(Figures, ShapesThatVaryBetweenCallsAreNotBelieved) {
  RunBuilder builder;
  const store::ThreadId host = builder.thread("1");
  const run::GroupId cast = builder.cast_group(2);
  for (const std::string_view dims : {"[[1, 1024], [1, 1024], []]", "[[1, 1000], [1, 1000], []]"}) {
    const Nanos begin = static_cast<Nanos>(dims.size()) * 1'000;
    builder.kernel(cast, begin, 500, {}, builder.op("aten::copy_", host, begin, 500, dims, "[]"));
  }
  builder.step(0, 100'000);
  const Evidence evidence = measure(builder.build(), {});
  EXPECT_TRUE(evidence.kernels[0].dims.empty());
  EXPECT_FALSE(evidence.kernels[0].elements_exact);
}

TEST(Figures, AboveThePeakIsOurDoubtNotAShare) {
  RunBuilder builder;
  PoolCase pool;
  pool.cast_ns = 300'000;
  pool.build(builder);
  const KernelFigures cast = measure(builder.run(), {}).kernels.front();
  EXPECT_GT(*cast.gbps, 1792);
  EXPECT_FALSE(cast.of_peak);
  EXPECT_NE(cast.doubt.find("peak"), std::string::npos);
}

TEST(Figures, CopyInsideTheDeviceReadsAndWritesItsBytes) {
  RunBuilder builder;
  const run::GroupId copy = builder.group("Memcpy DtoD (Device -> Device)", Owner::kMemcpy);
  builder.kernel(copy, 0, 1'000, {}, {}, false, 100'000);
  builder.step(0, 1'000);
  const KernelFigures figures = measure(builder.build(), {}).kernels.front();
  EXPECT_EQ(figures.bytes, 200'000);
  EXPECT_DOUBLE_EQ(*figures.gbps, 200);
}

TEST(Figures, LineOfAGraphReplayIsNotTheKernels) {
  RunBuilder builder;
  const store::ThreadId host = builder.thread("31742");
  const run::GroupId eager = builder.group("eager", Owner::kGemm);
  const run::GroupId replayed = builder.group("replayed", Owner::kNorm);
  builder.kernel(eager, 0, 300, builder.call("cudaLaunchKernel", host, -50, 10));
  builder.kernel(replayed, 500, 100, builder.call("cudaGraphLaunch", host, 10, 10), {}, true);
  builder.step(0, 600);
  builder.build();
  auto& frames = builder.trace().frames;
  frames.begin.push_back(-100);
  frames.dur.push_back(1'000);
  frames.name.push_back(builder.trace().strings.intern("engine.py(10): decode"));
  frames.thread.push_back(host);
  frames.call_from.emplace_back();
  builder.run().frame_parent.resize(1);
  builder.run().call_frame.assign(2, store::FrameRow(0));
  const Evidence evidence = measure(builder.run(), {});
  ASSERT_TRUE(evidence.kernels[0].source);
  EXPECT_EQ(evidence.kernels[0].source->function, "decode");
  EXPECT_FALSE(evidence.kernels[1].source);
  EXPECT_DOUBLE_EQ(evidence.attributed.source, 0.75);
}

TEST(PoolShape, KnowsTheLayoutsOfPoolsAndNotThoseOfWeights) {
  const auto rows = [](const std::vector<std::int64_t>& dims, std::int64_t model_row = 0) {
    const PoolShape shape = pool_shape(dims, model_row);
    return std::pair(shape.rows, shape.row);
  };
  using Rows = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(rows({495'552, 1, 576}), Rows(495'552, 576));
  EXPECT_EQ(rows({7'743, 64, 576}), Rows(495'552, 576));
  EXPECT_EQ(rows({495'552, 576}), Rows(495'552, 576));
  EXPECT_EQ(rows({65'536, 8, 128}), Rows(65'536, 1'024));
  EXPECT_EQ(rows({2, 4'096, 16, 8, 128}), Rows(131'072, 1'024));
  EXPECT_EQ(rows({100'000, 320}, 320), Rows(100'000, 320));
  EXPECT_EQ(rows({16'384, 6'144}).first, 0);    // a weight
  EXPECT_EQ(rows({256, 512, 6'144}).first, 0);  // expert weights
  EXPECT_EQ(rows({256, 6'144, 256}).first, 0);  // expert weights, down
  EXPECT_EQ(rows({154'880}).first, 0);
}

class PoolReads : public ::testing::Test {
 protected:
  Evidence look(const PoolCase& pool, Knowledge known = {}) {
    pool.build(builder);
    return measure(builder.run(), std::move(known));
  }
  static PoolCase without_shapes() {
    PoolCase pool;
    pool.dims = pool.types = "";
    return pool;
  }
  static Knowledge model(std::optional<Dtype> kv) {
    Knowledge known;
    known.model = glm5();
    known.model->kv_dtype = kv;
    return known;
  }
  RunBuilder builder;
};

TEST_F(PoolReads, ShapeOfThePoolIsRead) {
  const Evidence evidence = look(PoolCase{});
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  const PoolRead& read = evidence.pool_reads[0];
  EXPECT_EQ(read.row_from, "dims");
  EXPECT_EQ(read.rows, 495'552);
  EXPECT_EQ(read.layers, 78);
  EXPECT_EQ(read.tensors, 1);
  EXPECT_EQ(read.match, "exact");
  EXPECT_DOUBLE_EQ(read.before_attention, 1.0);
}

TEST_F(PoolReads, ModelAndGridGiveTheOneCandidate) {
  const Evidence evidence = look(without_shapes(), model(Dtype::kFp8E4m3));
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  EXPECT_EQ(evidence.pool_reads[0].row_from, "model");
  EXPECT_EQ(evidence.pool_reads[0].match, "exact");
  EXPECT_EQ(evidence.pool_reads[0].shape, (std::vector<std::int64_t>{495'552, 1, 576}));
  const KernelFigures& cast = evidence.kernels.front();
  EXPECT_EQ(cast.elements_exact, kPoolElements);
  EXPECT_EQ(cast.elements_how, "grid + 576 divides");
  EXPECT_EQ(cast.dtype_in_how, "config");
  EXPECT_EQ(cast.bytes, 856'313'856);
}

TEST_F(PoolReads, WithoutAModelTheRowIsAssumedAndTheTypeInferred) {
  const Evidence evidence = look(without_shapes());
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  EXPECT_EQ(evidence.pool_reads[0].row_from, "assumed");
  EXPECT_EQ(evidence.pool_reads[0].match, "inferred");
  EXPECT_EQ(evidence.kernels.front().dtype_in_how, "inferred");
  EXPECT_FALSE(evidence.kernels.front().elements_exact);
}

TEST_F(PoolReads, TwoTensorsPerLayerAreNoLatentPool) {
  PoolCase pool = without_shapes();
  pool.casts_per_layer = 2;
  const Evidence evidence = look(pool);
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  EXPECT_EQ(evidence.pool_reads[0].tensors, 2);
  EXPECT_EQ(evidence.pool_reads[0].row, 0);
  EXPECT_TRUE(evidence.pool_reads[0].shape.empty());
  EXPECT_EQ(evidence.pool_reads[0].elements, kPoolElements);
}

TEST_F(PoolReads, RowOfTheModelThatDoesNotDivideRefutesThePool) {
  PoolCase pool = without_shapes();
  pool.blocks = 557'497;  // 285,437,953 to 285,438,464: no multiple of 576 in between
  EXPECT_TRUE(look(pool, model(Dtype::kFp8E4m3)).pool_reads.empty());
}

TEST_F(PoolReads, SixteenBitPoolIsNotCast) {
  EXPECT_TRUE(look(without_shapes(), model(Dtype::kBf16)).pool_reads.empty());
}

TEST_F(PoolReads, CastInFrontOfAGemmIsNoPoolWithoutShapes) {
  PoolCase pool = without_shapes();
  pool.cast_before_gemm = true;
  EXPECT_TRUE(look(pool).pool_reads.empty());
}

TEST_F(PoolReads, WeightShapeIsNoPool) {
  PoolCase pool;
  pool.dims = "[[16384, 17422], [16384, 17422], []]";
  EXPECT_TRUE(look(pool).pool_reads.empty());
}

TEST_F(PoolReads, SmallCastsAreActivations) {
  PoolCase pool = without_shapes();
  pool.blocks = 12;
  EXPECT_TRUE(look(pool).pool_reads.empty());
}

TEST_F(PoolReads, ActivationOfAPromptIsNoPool) {
  PoolCase pool;  // 4,096 tokens of 8 heads: as many rows as tokens
  pool.dims = "[[4096, 8, 128], [4096, 8, 128], []]";
  pool.blocks = 8'192;
  pool.batch = 4'096;
  EXPECT_TRUE(look(pool).pool_reads.empty());
}

TEST_F(PoolReads, KeyAndValuePoolsOfABackendAreTwoTensors) {
  PoolCase pool;
  pool.layers = 48;
  pool.layer_count = 48;
  pool.casts_per_layer = 2;
  pool.op = "aten::_to_copy";
  pool.dims = "[[65536, 8, 128], []]";
  pool.types = "[\"c10::Float8_e4m3fn\", \"Scalar\"]";
  pool.blocks = 131'072;
  const Evidence evidence = look(pool);
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  EXPECT_EQ(evidence.pool_reads[0].tensors, 2);
  EXPECT_EQ(evidence.pool_reads[0].pieces, 1);
  EXPECT_EQ(evidence.pool_reads[0].layers, 48);
}

TEST_F(PoolReads, PiecesOfASplitTensorAreSummed) {
  // 16,554,688 rows of 576 in 16 launches of 1,034,668 rows: 595,968,768 elements, 1,164,002 blocks.
  PoolCase pool = without_shapes();
  pool.layers = 4;
  pool.layer_count = 4;
  pool.casts_per_layer = 16;
  pool.blocks = 1'164'002;
  const Evidence evidence = look(pool, model(Dtype::kFp8E4m3));
  ASSERT_EQ(evidence.pool_reads.size(), 1U);
  const PoolRead& read = evidence.pool_reads[0];
  EXPECT_EQ(read.pieces, 16);
  EXPECT_EQ(read.tensors, 1);
  EXPECT_NEAR(static_cast<double>(read.rows), 16'554'688.0, 16.0);
  EXPECT_EQ(read.match, "within-launch-rounding");
}

TEST_F(PoolReads, GridThatFollowsTheBatchIsNoPool) {
  PoolCase pool;
  pool.build(builder);
  // One more cast with the same grid in one of the steps: the counts differ.
  builder.kernel(run::GroupId(0), 1'000, 10);
  builder.build();
  EXPECT_TRUE(measure(builder.run(), {}).pool_reads.empty());
}

TEST(Facts, EachNamesAQueryAndIsMadeOnce) {
  RunBuilder builder;
  PoolCase{}.build(builder);
  Evidence evidence = measure(builder.run(), {});
  const std::size_t count = evidence.facts.size();
  const KernelFacts first = state_kernel(evidence, 0);
  EXPECT_EQ(evidence.facts.size(), count);  // 1 % of the step or more: already stated
  EXPECT_EQ(state_kernel(evidence, 0).bytes, first.bytes);
  for (std::size_t i = 0; i < evidence.facts.size(); ++i) {
    EXPECT_EQ(evidence.facts[i].id, "F" + std::to_string(i + 1));
    EXPECT_EQ(evidence.facts[i].query.rfind("culprit ", 0), 0U);
    EXPECT_FALSE(evidence.facts[i].how.empty());
  }
}

}  // namespace
}  // namespace culprit::evidence
