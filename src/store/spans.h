// Spans: half-open time ranges [begin, end) in ns and the few operations the budget needs. A
// SpanSet is sorted, disjoint and holds no empty span; every operation is O(n + m) after one sort.
#pragma once

#include <vector>

#include "base/id.h"

namespace culprit::store {

struct Span {
  Nanos begin = 0;
  Nanos end = 0;
  Nanos length() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

using SpanSet = std::vector<Span>;

SpanSet union_of(std::vector<Span> spans);  // any order, may overlap or be empty
SpanSet intersect(const SpanSet& a, const SpanSet& b);
SpanSet subtract(const SpanSet& a, const SpanSet& b);  // a without b
Nanos total(const SpanSet& spans);

}  // namespace culprit::store
