#include "known/launch_geometry.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <vector>

namespace culprit::known {
namespace {

// The copy of the founding case: contiguous cast, 4 values in each of 128 threads.
KernelInfo pool_cast() {
  KernelInfo info;
  info.grid_rule = GridRule::kLinear;
  info.threads_per_block = 128;
  info.work_per_thread = 4;
  info.work_per_block = 512;
  return info;
}

Geometry launch(std::int32_t grid, std::int32_t block) { return {{grid, 1, 1}, {block, 1, 1}}; }

TEST(LaunchGeometry, TheWholePoolCastIsExactOnceItsRowDivides) {
  const auto elements = elements_from_grid(pool_cast(), launch(557'496, 128));
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ(elements->min, 285'437'441);
  EXPECT_EQ(elements->max, 285'437'952);
  EXPECT_TRUE(elements->contains(std::int64_t{495'552} * 576));
  const auto exact = multiples_within(*elements, 576);
  ASSERT_TRUE(exact.has_value());
  EXPECT_EQ(exact->min, 285'437'952);
  EXPECT_EQ(exact->max, 285'437'952);
}

// Blocks of a pool of 131,072 tokens without a page, with a page of 1, and of 64.
TEST(LaunchGeometry, SisterPoolsOfAnotherPageSizeAreToldApart) {
  const struct {
    std::int32_t blocks;
    std::int64_t rows;
  } kPools[] = {{147'456, 131'072}, {147'458, 131'073}, {147'528, 131'136}};
  for (const auto& pool : kPools) {
    const auto elements = elements_from_grid(pool_cast(), launch(pool.blocks, 128));
    const auto exact = multiples_within(elements.value(), 576);
    EXPECT_EQ(exact.value().min, pool.rows * 576);
    EXPECT_EQ(exact.value().max, pool.rows * 576);
  }
}

TEST(LaunchGeometry, TheBlockOfTheBuildReplacesTheNamesDefault) {
  EXPECT_EQ(work_of_block(pool_cast(), launch(10, 256)), 1024);  // ROCm
  EXPECT_EQ(work_of_block(pool_cast(), launch(10, 64)), 256);    // CUDA in 2021
  EXPECT_EQ(work_of_block(pool_cast(), launch(10, 0)), 512);     // not recorded
  EXPECT_EQ(work_of_block(pool_cast(), launch(10, 100)), 0);
  EXPECT_EQ(work_of_block(pool_cast(), launch(10, -128)), 0);
}

TEST(LaunchGeometry, NoAnswerWhereTheRuleDoesNotInvert) {
  KernelInfo fixed = pool_cast();
  fixed.work_per_thread = 0;  // nt is a template argument: another block contradicts the name
  EXPECT_TRUE(elements_from_grid(fixed, launch(10, 128)).has_value());
  EXPECT_FALSE(elements_from_grid(fixed, launch(10, 256)).has_value());
  EXPECT_FALSE(elements_from_grid(pool_cast(), launch(0, 128)).has_value());
  EXPECT_FALSE(elements_from_grid(pool_cast(), {{10, 2, 1}, {128, 1, 1}}).has_value());
  KernelInfo none;
  EXPECT_FALSE(elements_from_grid(none, launch(10, 128)).has_value());
  EXPECT_FALSE(rows_from_grid(pool_cast(), launch(10, 128)).has_value());
}

TEST(LaunchGeometry, RowsOfOneBlockEachAreExact) {
  KernelInfo gather;
  gather.grid_rule = GridRule::kRowsPerBlock;
  EXPECT_EQ(rows_from_grid(gather, {{888, 2, 1}, {256, 1, 1}}), 888);
  EXPECT_FALSE(rows_from_grid(gather, {}).has_value());
  EXPECT_FALSE(elements_from_grid(gather, launch(888, 256)).has_value());
}

TEST(LaunchGeometry, MultiplesAgreeWithCountingThem) {
  for (std::int64_t min = 1; min < 40; ++min) {
    for (std::int64_t max = min; max < 60; max += 7) {
      for (std::int64_t divisor = 1; divisor < 50; ++divisor) {
        std::vector<std::int64_t> multiples;
        for (std::int64_t n = min; n <= max; ++n) {
          if (n % divisor == 0) multiples.push_back(n);
        }
        const auto found = multiples_within({min, max}, divisor);
        ASSERT_EQ(found.has_value(), !multiples.empty()) << min << ' ' << max << ' ' << divisor;
        if (found) {
          ASSERT_EQ(found->min, multiples.front());
          ASSERT_EQ(found->max, multiples.back());
        }
      }
    }
  }
  EXPECT_FALSE(multiples_within({1, 10}, 0).has_value());
  EXPECT_FALSE(multiples_within({1, 10}, -3).has_value());
  EXPECT_FALSE(multiples_within({INT64_MAX - 3, INT64_MAX - 1}, INT64_MAX).has_value());
}

// Halves one dimension as PyTorch's iterator does.
int launches_by_splitting(std::int64_t elements, int bytes) {
  if (elements <= INT32_MAX && 1 + (elements - 1) * bytes <= INT32_MAX) return 1;
  const std::int64_t half = elements / 2;
  return launches_by_splitting(half, bytes) + launches_by_splitting(elements - half, bytes);
}

TEST(LaunchGeometry, ThirtyTwoBitIndexingSplitsWherePyTorchDoes) {
  EXPECT_EQ(launches_for_32bit_indexing(495'552, 576, 2), 1);
  EXPECT_EQ(launches_for_32bit_indexing(1'864'135, 576, 2), 1);
  EXPECT_EQ(launches_for_32bit_indexing(1'864'136, 576, 2), 2);
  EXPECT_EQ(launches_for_32bit_indexing(16'550'000, 576, 2), 16);
  for (const std::int64_t rows :
       {std::int64_t{3'728'270}, std::int64_t{3'728'271}, std::int64_t{3'728'273},
        std::int64_t{7'456'541}, std::int64_t{9'999'999}}) {
    for (const int bytes : {1, 2, 4}) {
      EXPECT_EQ(launches_for_32bit_indexing(rows, 576, bytes),
                launches_by_splitting(rows * 576, bytes))
          << rows;
    }
  }
  EXPECT_EQ(launches_for_32bit_indexing(0, 576, 2), 1);
  EXPECT_EQ(launches_for_32bit_indexing(INT64_MAX, INT64_MAX, 8), INT_MAX);
}

}  // namespace
}  // namespace culprit::known
