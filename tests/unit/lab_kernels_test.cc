// Every instruction set of this machine against the reference, and the reference against arithmetic
// done by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lab/kernels/check.h"
#include "lab/kernels/drawn.h"
#include "lab/kernels/kernels.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

class KernelsOf : public testing::TestWithParam<Isa> {};

TEST_P(KernelsOf, AgreeWithTheReference) {
  for (const KernelCheck& check : check_kernels(GetParam()))
    EXPECT_TRUE(check.ok()) << check.kernel << " (" << check.format << "): " << check.worst
                            << ", tolerance " << check.tolerance << ", " << check.numbers
                            << " numbers";
}

INSTANTIATE_TEST_SUITE_P(Isas, KernelsOf, testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

const Kernels& reference() { return kernels(Isa::kReference); }

TEST(Isa, NamesAreThoseOfThisMachine) {
  EXPECT_EQ(*isa_named("portable"), Isa::kPortable);
  for (const Isa isa : available_isas()) EXPECT_EQ(*isa_named(isa_name(isa)), isa);
  const auto unknown = isa_named("portible");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("portable"), std::string::npos);
}

// [[1, 2], [3, 4]] x [10, 0.5] in the fewest words that F32 allows.
TEST(Reference, MultipliesRows) {
  const float weights[4] = {1, 2, 3, 4}, x[2] = {10, 0.5F};
  Matrix m{Format::kF32, 2, 2, reinterpret_cast<const std::byte*>(weights)};
  m.scale = 2;
  Placed prepared(prepared_bytes(Activations::kFloat, 2), 0);
  reference().prepare(Activations::kFloat, x, 2, 0, prepared.data());
  float y[2] = {};
  reference().linear(m, {Activations::kFloat, 1, 2, prepared.data()}, 0, 2, y, 2);
  EXPECT_EQ(y[0], 22);
  EXPECT_EQ(y[1], 64);
}

// A prepared NVFP4 row stands for what number/fp4.h quantises it to.
TEST(Reference, PreparesNvfp4AsTheFormulasSay) {
  constexpr std::int64_t kCols = 48;
  constexpr float kInputScale = 0.003F;
  Draw draw(5);
  const auto x = draw.numbers(kCols);
  std::vector<std::uint8_t> codes(kCols / 2), scales(kCols / 16);
  quantize_activations(x, kInputScale, codes.data(), scales.data());
  Placed prepared(prepared_bytes(Activations::kNvfp4, kCols), 0);
  reference().prepare(Activations::kNvfp4, x.data(), kCols, kInputScale, prepared.data());
  Batch batch{Activations::kNvfp4, 1, kCols, prepared.data()};
  batch.input_scale = kInputScale;
  for (std::size_t i = 0; i < kCols; ++i) {
    const auto code = static_cast<std::uint8_t>(codes[i / 2] >> (i % 2 * 4) & 15);
    const double want = static_cast<double>(from_e2m1(code)) *
                        static_cast<double>(from_e4m3(scales[i / 16])) *
                        static_cast<double>(kInputScale);
    EXPECT_DOUBLE_EQ(batch.number(0, static_cast<std::int64_t>(i)), want) << i;
  }
}

// Two positions of equal score: their mean. A third that the heads like by ln 2 more: as much as both.
TEST(Reference, AttendsByWeight) {
  const float q[1] = {1}, keys[3] = {0, 0, 0.69140625F};  // ln 2 as BF16 has it
  Bf16 rows[3][2];
  for (std::size_t i = 0; i < 3; ++i) {
    rows[i][0] = to_bf16(keys[i]);
    rows[i][1] = to_bf16(static_cast<float>(i));
  }
  const KvRows k{KvFormat::kBf16, reinterpret_cast<const std::byte*>(rows), 4};
  KvRows v = k;
  v.data += 2;
  float max = 0, sum = 0, out = 0;
  const Partial p{&max, &sum, &out};
  reference().attend({q, 1, 1, 1, 1}, k, v, 0, 2, p);
  reference().finish(p, 1, 1);
  EXPECT_EQ(out, 0.5F);
  reference().attend({q, 1, 1, 1, 1}, k, v, 0, 3, p);
  reference().finish(p, 1, 1);
  EXPECT_NEAR(out, (0 + 1 + 2 * 2.0) / 4, 2e-3);
  reference().attend({q, 1, 1, 1, 1}, k, v, 1, 1, p);  // of nothing
  EXPECT_EQ(max, -INFINITY);
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(out, 0);
}

TEST(Reference, IndexerCountsOnlyWhatIsPositive) {
  const float q[2] = {2, -3}, weight[2] = {10, 100};  // two heads of one number
  const Bf16 keys[2] = {to_bf16(1), to_bf16(-1)};
  float scores[2] = {};
  reference().index_scores({q, 2, 1, 0, 0.5F}, weight,
                           {KvFormat::kBf16, reinterpret_cast<const std::byte*>(keys), 2}, 0, 2,
                           scores);
  EXPECT_EQ(scores[0], 10);   // 10 x 2 x 0.5
  EXPECT_EQ(scores[1], 150);  // 100 x 3 x 0.5
}

TEST(Reference, RotatesPairsByAQuarter) {
  const float cos[2] = {0, 1}, sin[2] = {1, 0};
  float interleaved[4] = {1, 2, 3, 4}, split[4] = {1, 2, 3, 4};
  reference().rope(interleaved, cos, sin, 4, false);
  reference().rope(split, cos, sin, 4, true);
  EXPECT_EQ(std::vector<float>(interleaved, interleaved + 4), (std::vector<float>{-2, 1, 3, 4}));
  EXPECT_EQ(std::vector<float>(split, split + 4), (std::vector<float>{-3, 2, 1, 4}));
}

}  // namespace
}  // namespace culprit::lab
