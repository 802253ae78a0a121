// The paged KV pool: one row per slot and layer, as servers lay it out: a page of padding first (slot
// 0 takes what nobody reads), then the pages that requests lease. A row is what a layer remembers of a
// token: MLA the latent and the rope key (576 numbers), GQA all keys, then all values; BF16, or E4M3
// unscaled and saturating. With an indexer each slot has a key of it beside: E4M3 and one float.
// Source: SGLang memory_pool.py.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/engine/memory.h"
#include "lab/kernels/kernels.h"

namespace culprit::lab {

struct PoolShape {
  std::int64_t layers = 0, tokens = 0;  // slots that can be leased: a multiple of `page`
  std::int64_t page = 1;
  std::int64_t width = 0;      // numbers in a row
  std::int64_t index_dim = 0;  // of the indexer's key; 0: none
  KvFormat format = KvFormat::kBf16;

  std::int64_t rows() const { return tokens + page; }
  std::int64_t row_bytes() const { return width * (format == KvFormat::kBf16 ? 2 : 1); }
  std::int64_t index_bytes() const { return index_dim == 0 ? 0 : index_dim + 4; }
  std::int64_t bytes() const { return layers * rows() * (row_bytes() + index_bytes()); }
};

std::string_view format_name(KvFormat format);  // "bf16", "e4m3"

// A request's part of the pool: slots[i] is where token i lies. The table is the pool's.
struct Lease {
  std::int32_t* slots = nullptr;
  std::int64_t reserved = 0;  // tokens that there are slots for: whole pages
};

class Pool {
 public:
  // Page tables for `leases` requests of at most `longest` tokens.
  static Result<Pool> make(const PoolShape& shape, std::int64_t leases, std::int64_t longest);

  const PoolShape& shape() const { return shape_; }
  std::string_view format_name() const { return lab::format_name(shape_.format); }
  // A layer's rows in slots index[0], index[1], ...; without an index, in order.
  KvRows rows(std::int64_t layer, const std::int32_t* index = nullptr) const;
  KvRows index_keys(std::int64_t layer, const std::int32_t* index) const;
  // values [width]; key [index_dim], stored as code x scale with scale = amax / 448.
  void store(const Kernels& kernels, std::int64_t layer, std::int32_t slot, const float* values);
  void store_index_key(const Kernels& kernels, std::int64_t layer, std::int32_t slot, float* key);

  std::int64_t free_tokens() const;
  Lease lease();  // of no slots yet; there are as many as make() was told
  // Slots for tokens [0, tokens). False, and nothing changes: too few pages are free.
  bool reserve(Lease& lease, std::int64_t tokens);
  void give_up_slots(Lease& lease);  // an evicted request keeps its table
  void end(Lease& lease);
  // Rows of a context that nobody computed, of unit variance, into these slots of every layer.
  void draw(const Kernels& kernels, std::span<const std::int32_t> slots, std::uint64_t seed);

 private:
  PoolShape shape_;
  std::int64_t longest_ = 0;
  Arena arena_;
  std::byte* rows_ = nullptr;
  std::byte* index_rows_ = nullptr;
  std::vector<float> drawn_;              // a row that draw() makes up
  std::vector<std::int32_t> free_pages_;  // the next one last
  std::vector<std::int32_t*> free_tables_;
};

}  // namespace culprit::lab
