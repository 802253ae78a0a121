#include "fleet/share.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace culprit::fleet {

std::vector<std::vector<std::size_t>> share_out(const std::vector<std::int64_t>& bytes,
                                                std::size_t parts) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  using Load = std::pair<std::int64_t, std::size_t>;  // bytes, part
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::size_t part = 0; part < parts; ++part) least.emplace(0, part);
  std::vector<std::vector<std::size_t>> shares(parts);
  for (const std::size_t trace : order) {
    const auto [load, part] = least.top();
    least.pop();
    shares[part].push_back(trace);
    least.emplace(load + bytes[trace], part);
  }
  return shares;
}

}  // namespace culprit::fleet
