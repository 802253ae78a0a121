// The layout of a KV pool in a tensor's shape.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::evidence {

struct PoolShape {
  std::int64_t rows = 0;  // token slots; 0: the shape is not that of a pool
  std::int64_t row = 0;   // elements of one slot
};

// [rows, 1, latent], [pages, page, latent], [rows, heads, dim], [2, pages, page, heads, dim], ...: a
// shape whose last extents make a plausible KV row, of `model_row` elements (0: no model known) or of
// a common one. Extents positive, product below 2^55.
PoolShape pool_shape(const std::vector<std::int64_t>& dims, std::int64_t model_row);

}  // namespace culprit::evidence
