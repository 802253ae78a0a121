#include "store/spans.h"

#include <algorithm>

namespace culprit::store {

SpanSet union_of(std::vector<Span> spans) {
  const auto by_begin = [](const Span& a, const Span& b) { return a.begin < b.begin; };
  if (!std::is_sorted(spans.begin(), spans.end(), by_begin))
    std::sort(spans.begin(), spans.end(), by_begin);
  SpanSet merged;
  for (const Span& span : spans) {
    if (span.empty()) continue;
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

SpanSet intersect(const SpanSet& a, const SpanSet& b) {
  SpanSet common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Span both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (!both.empty()) common.push_back(both);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common;
}

SpanSet subtract(const SpanSet& a, const SpanSet& b) {
  SpanSet left;
  std::size_t j = 0;
  for (Span span : a) {
    while (j < b.size() && b[j].end <= span.begin) ++j;
    for (std::size_t k = j; k < b.size() && b[k].begin < span.end; ++k) {
      if (b[k].begin > span.begin) left.push_back({span.begin, b[k].begin});
      span.begin = std::max(span.begin, b[k].end);
    }
    if (!span.empty()) left.push_back(span);
  }
  return left;
}

Nanos total(const SpanSet& spans) {
  Nanos sum = 0;
  for (const Span& span : spans) sum += span.length();
  return sum;
}

}  // namespace culprit::store
