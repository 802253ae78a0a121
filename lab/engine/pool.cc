#include "lab/engine/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace culprit::lab {

Result<Pool> Pool::make(const PoolShape& shape, std::int64_t leases, std::int64_t longest) {
  if (shape.tokens <= 0 || shape.tokens % shape.page != 0 ||
      shape.rows() > std::numeric_limits<std::int32_t>::max()) {
    return Error{
        .code = Error::Code::kUsage,
        .what = fmt::format("a pool of {} tokens in pages of {}", shape.tokens, shape.page),
        .where = "the KV pool",
        .hint = "the number of tokens is a multiple of the page, and below 2^31",
        .note_code = {}};
  }
  Pool pool;
  pool.shape_ = shape;
  pool.drawn_.resize(static_cast<std::size_t>(std::max(shape.width, shape.index_dim)));
  pool.longest_ = (longest + shape.page - 1) / shape.page * shape.page;
  std::int32_t* tables = nullptr;
  const auto carve = [&](Carver carver) {
    pool.rows_ = carver.take<std::byte>(shape.layers * shape.rows() * shape.row_bytes());
    pool.index_rows_ = carver.take<std::byte>(shape.layers * shape.rows() * shape.index_bytes());
    tables = carver.take<std::int32_t>(leases * pool.longest_);
    return carver.bytes();
  };
  TRY(pool.arena_, Arena::make(carve(Carver(nullptr)), "the KV pool"));
  carve(Carver(pool.arena_.data()));
  for (std::int64_t i = leases - 1; i >= 0; --i)
    pool.free_tables_.push_back(tables + i * pool.longest_);
  for (std::int64_t page = shape.tokens / shape.page; page >= 1; --page)
    pool.free_pages_.push_back(static_cast<std::int32_t>(page));
  return pool;
}

std::string_view format_name(KvFormat format) {
  return format == KvFormat::kBf16 ? "bf16" : "e4m3";
}

KvRows Pool::rows(std::int64_t layer, const std::int32_t* index) const {
  return {.format = shape_.format,
          .data = rows_ + layer * shape_.rows() * shape_.row_bytes(),
          .stride = shape_.row_bytes(),
          .index = index,
          .scale_at = -1};
}

KvRows Pool::index_keys(std::int64_t layer, const std::int32_t* index) const {
  return {.format = KvFormat::kE4m3,
          .data = index_rows_ + layer * shape_.rows() * shape_.index_bytes(),
          .stride = shape_.index_bytes(),
          .index = index,
          .scale_at = shape_.index_dim};
}

void Pool::store(const Kernels& kernels, std::int64_t layer, std::int32_t slot,
                 const float* values) {
  std::byte* row = rows_ + (layer * shape_.rows() + slot) * shape_.row_bytes();
  if (shape_.format == KvFormat::kE4m3)
    kernels.to_e4m3(values, shape_.width, reinterpret_cast<std::uint8_t*>(row));
  else
    kernels.to_bf16(values, shape_.width, reinterpret_cast<Bf16*>(row));
}

void Pool::store_index_key(const Kernels& kernels, std::int64_t layer, std::int32_t slot,
                           float* key) {
  constexpr float kLargest = 448;
  float amax = 0;
  for (std::int64_t i = 0; i < shape_.index_dim; ++i) amax = std::max(amax, std::abs(key[i]));
  const float scale = amax > 0 ? amax / kLargest : 1.0F;
  for (std::int64_t i = 0; i < shape_.index_dim; ++i) key[i] /= scale;
  std::byte* row = index_rows_ + (layer * shape_.rows() + slot) * shape_.index_bytes();
  kernels.to_e4m3(key, shape_.index_dim, reinterpret_cast<std::uint8_t*>(row));
  std::memcpy(row + shape_.index_dim, &scale, sizeof scale);
}

void Pool::draw(const Kernels& kernels, std::span<const std::int32_t> slots, std::uint64_t seed) {
  constexpr float kRange = 1.7320508F;  // uniform in +-sqrt(3): unit variance
  std::uint64_t state = seed * 2 + 1;
  const auto draw = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      drawn_[static_cast<std::size_t>(i)] =
          kRange * (static_cast<float>(state >> 40) * 0x1p-23F - 1);
    }
    return drawn_.data();
  };
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
    for (const std::int32_t slot : slots) {
      store(kernels, layer, slot, draw(shape_.width));
      if (shape_.index_dim > 0) store_index_key(kernels, layer, slot, draw(shape_.index_dim));
    }
}

std::int64_t Pool::free_tokens() const {
  return static_cast<std::int64_t>(free_pages_.size()) * shape_.page;
}

Lease Pool::lease() {
  Lease lease{free_tables_.back(), 0};
  free_tables_.pop_back();
  return lease;
}

bool Pool::reserve(Lease& lease, std::int64_t tokens) {
  if (tokens > longest_ || tokens - lease.reserved > free_tokens()) return false;
  while (lease.reserved < tokens) {
    const std::int64_t first = free_pages_.back() * shape_.page;
    free_pages_.pop_back();
    for (std::int64_t i = 0; i < shape_.page; ++i)
      lease.slots[lease.reserved + i] = static_cast<std::int32_t>(first + i);
    lease.reserved += shape_.page;
  }
  return true;
}

void Pool::give_up_slots(Lease& lease) {
  for (; lease.reserved > 0; lease.reserved -= shape_.page)
    free_pages_.push_back(lease.slots[lease.reserved - 1] / static_cast<std::int32_t>(shape_.page));
}

void Pool::end(Lease& lease) {
  give_up_slots(lease);
  free_tables_.push_back(lease.slots);
  lease.slots = nullptr;
}

}  // namespace culprit::lab
