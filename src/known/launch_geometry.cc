#include "known/launch_geometry.h"

#include <limits>

namespace culprit::known {
namespace {

bool linear_grid(const Geometry& geometry) {
  return geometry.grid[0] > 0 && geometry.grid[1] <= 1 && geometry.grid[2] <= 1;
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

}  // namespace

std::int64_t work_of_block(const KernelInfo& info, const Geometry& geometry) {
  if (info.grid_rule != GridRule::kLinear) return 0;
  const std::int64_t threads = geometry.block[0];
  if (threads == 0 || threads == info.threads_per_block) return info.work_per_block;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kMostThreads = 1024;
  const bool scales = info.work_per_thread > 0 && threads > 0 && threads <= kMostThreads &&
                      threads % kWarp == 0 && geometry.block[1] <= 1;
  return scales ? threads * info.work_per_thread : 0;
}

std::optional<ElementInterval> elements_from_grid(const KernelInfo& info,
                                                  const Geometry& geometry) {
  const std::int64_t work = work_of_block(info, geometry);
  if (work <= 0 || !linear_grid(geometry)) return std::nullopt;
  const std::int64_t blocks = geometry.grid[0];
  return ElementInterval{(blocks - 1) * work + 1, blocks * work};
}

std::optional<std::int64_t> rows_from_grid(const KernelInfo& info, const Geometry& geometry) {
  if (info.grid_rule != GridRule::kRowsPerBlock || geometry.grid[0] <= 0) return std::nullopt;
  return geometry.grid[0];
}

std::optional<ElementInterval> multiples_within(const ElementInterval& interval,
                                                std::int64_t divisor) {
  if (divisor <= 0 || interval.min < 0 || interval.max < interval.min) return std::nullopt;
  const std::int64_t short_by = interval.min % divisor == 0 ? 0 : divisor - interval.min % divisor;
  if (short_by > interval.max - interval.min) return std::nullopt;
  return ElementInterval{interval.min + short_by, interval.max - interval.max % divisor};
}

int launches_for_32bit_indexing(std::int64_t rows, std::int64_t row_elements,
                                int max_element_bytes) {
  if (rows <= 0 || row_elements <= 0 || max_element_bytes <= 0) return 1;
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  const auto fits = [&](std::int64_t n) {
    return n <= kLimit && 1 + (n - 1) * max_element_bytes <= kLimit;
  };
  // Contiguous operands have one dimension by then, so a call is a binary tree whose 2^k nodes at
  // depth k differ by at most one element. At the first depth where the smaller fits, nothing above
  // fits.
  const std::int64_t elements = saturating_product(rows, row_elements);
  int depth = 0;
  while (!fits(elements >> depth)) ++depth;
  const std::int64_t nodes = std::int64_t{1} << depth;
  const std::int64_t larger = elements & (nodes - 1);
  const std::int64_t launches = fits((elements >> depth) + 1) ? nodes : nodes + larger;
  constexpr std::int64_t kMostLaunches = std::numeric_limits<int>::max();
  return static_cast<int>(launches < kMostLaunches ? launches : kMostLaunches);
}

}  // namespace culprit::known
