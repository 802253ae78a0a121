// time_order: the rows 0..n-1 in the order of `before`, equal rows in row order. Traces are written
// almost in time order, so this merges the runs it finds: O(n) on ordered rows, O(n log runs) else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace culprit::run {

using RowList = std::vector<std::uint32_t>;

template <class Before>
void merge_runs(RowList& rows, Before before) {
  std::vector<std::size_t> bounds{0};  // of the ordered runs
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (before(rows[i], rows[i - 1])) bounds.push_back(i);
  bounds.push_back(rows.size());
  RowList merged(bounds.size() > 2 ? rows.size() : 0);
  while (bounds.size() > 2) {
    std::vector<std::size_t> next{0};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const std::size_t middle = bounds[i + 1];
      const std::size_t end = bounds[std::min(i + 2, bounds.size() - 1)];
      const auto at = [&](std::size_t k) { return rows.begin() + static_cast<std::ptrdiff_t>(k); };
      std::merge(at(bounds[i]), at(middle), at(middle), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(bounds[i]), before);
      next.push_back(end);
    }
    rows.swap(merged);
    bounds.swap(next);
  }
}

template <class Before>
RowList time_order(std::size_t n, Before before) {
  RowList rows(n);
  std::iota(rows.begin(), rows.end(), 0U);
  merge_runs(rows, before);
  return rows;
}

// Buckets: row numbers grouped by a small key, in row order within a key; bucket k is
// rows[start[k]], ..., rows[start[k + 1] - 1].
struct Buckets {
  RowList rows;
  std::vector<std::uint32_t> start;
  std::size_t count() const { return start.size() - 1; }
};

// `key(row)` is below `keys`, or is `keys` for a row that is to be left out.
template <class Key>
Buckets bucket_rows(std::size_t n, std::size_t keys, Key key) {
  Buckets buckets;
  buckets.start.assign(keys + 2, 0);
  for (std::size_t row = 0; row < n; ++row) ++buckets.start[key(row) + 1];
  std::partial_sum(buckets.start.begin(), buckets.start.end(), buckets.start.begin());
  buckets.rows.resize(n);
  std::vector<std::uint32_t> next(buckets.start.begin(), buckets.start.end() - 1);
  for (std::size_t row = 0; row < n; ++row)
    buckets.rows[next[key(row)]++] = static_cast<std::uint32_t>(row);
  buckets.start.pop_back();
  buckets.rows.resize(buckets.start.back());
  return buckets;
}

}  // namespace culprit::run
