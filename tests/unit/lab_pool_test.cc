// The paged pool: slots are leased once, pages come back, rows keep what they were given.
#include <gtest/gtest.h>

#include <set>

#include "lab/engine/pool.h"

namespace culprit::lab {
namespace {

PoolShape small(std::int64_t tokens, std::int64_t page) {
  return {.layers = 2, .tokens = tokens, .page = page, .width = 24};
}

TEST(Pool, LeasesEachSlotOnceAndNeverThePadding) {
  for (const std::int64_t page : {1, 4, 64}) {
    auto pool = Pool::make(small(128, page), 3, 128);
    ASSERT_TRUE(pool.ok());
    Lease a = pool->lease(), b = pool->lease();
    ASSERT_TRUE(pool->reserve(a, 50));
    ASSERT_TRUE(pool->reserve(b, 60));
    EXPECT_TRUE(pool->reserve(a, 64));
    std::set<std::int32_t> slots;
    for (const Lease& lease : {a, b})
      for (std::int64_t i = 0; i < lease.reserved; ++i) {
        EXPECT_GE(lease.slots[i], page);
        EXPECT_LT(lease.slots[i], 128 + page);
        EXPECT_TRUE(slots.insert(lease.slots[i]).second);
      }
    EXPECT_EQ(pool->free_tokens(), 128 - static_cast<std::int64_t>(slots.size()));
  }
}

TEST(Pool, IsFullWithoutHarmAndRecovers) {
  auto pool = Pool::make(small(64, 16), 2, 64);
  ASSERT_TRUE(pool.ok());
  Lease a = pool->lease(), b = pool->lease();
  ASSERT_TRUE(pool->reserve(a, 40));  // three pages
  EXPECT_FALSE(pool->reserve(b, 17));
  EXPECT_EQ(b.reserved, 0);
  EXPECT_EQ(pool->free_tokens(), 16);
  pool->end(a);
  EXPECT_EQ(pool->free_tokens(), 64);
  EXPECT_TRUE(pool->reserve(b, 64));
  EXPECT_FALSE(pool->reserve(b, 65));  // longer than a table
}

TEST(Pool, RefusesPagesThatDoNotFit) {
  const auto pool = Pool::make(small(100, 64), 1, 64);
  ASSERT_FALSE(pool.ok());
  EXPECT_NE(pool.error().what.find("100 tokens in pages of 64"), std::string::npos);
}

TEST(Pool, KeepsRowsInItsFormat) {
  std::vector<float> row(24);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i) - 11.3F;
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kE4m3}) {
    PoolShape shape = small(8, 1);
    shape.format = format;
    auto pool = Pool::make(shape, 1, 8);
    ASSERT_TRUE(pool.ok());
    pool->store(kernels(Isa::kPortable), 1, 5, row.data());
    const KvRows rows = pool->rows(1);
    EXPECT_EQ(rows.stride, format == KvFormat::kBf16 ? 48 : 24);
    std::vector<float> back(24);
    const auto* at = reinterpret_cast<const std::uint8_t*>(rows.data + 5 * rows.stride);
    if (format == KvFormat::kBf16)
      kernels(Isa::kPortable).from_bf16(reinterpret_cast<const Bf16*>(at), 24, back.data());
    else
      kernels(Isa::kPortable).from_e4m3(at, 24, back.data());
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(back[i], row[i], std::abs(row[i]) / (format == KvFormat::kBf16 ? 256 : 16));
  }
}

}  // namespace
}  // namespace culprit::lab
