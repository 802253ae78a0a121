#include "store/trace.h"

#include <algorithm>

namespace culprit::store {

void CategoryCounts::add(std::string_view category, std::int64_t events) {
  constexpr std::size_t kMost = 32, kLongest = 64;
  category = category.substr(0, kLongest);
  const auto known = std::find_if(counts.begin(), counts.end(),
                                  [&](const auto& each) { return each.first == category; });
  if (known != counts.end())
    known->second += events;
  else if (counts.size() < kMost)
    counts.emplace_back(category, events);
}

}  // namespace culprit::store
