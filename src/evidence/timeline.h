// Timeline: the device's time from the first busy ns to the last, cut into segments with one owner
// each; idle ones lie between two busy ones. Compute hides communication and copies, never the reverse; among equals the one that began
// first owns the time (ties: trace order). Contiguous, no empty segment. O(activities).
#pragma once

#include <vector>

#include "run/run.h"
#include "store/spans.h"

namespace culprit::evidence {

struct Segment {
  Nanos begin = 0, end = 0;
  run::ActivityId owner;  // invalid: the device was idle
  bool idle() const { return !owner.valid(); }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// `activities` in order of begin time.
std::vector<Segment> timeline(const std::vector<run::Activity>& activities);

// Index of the first segment that ends after `t`; segments.size() if none does.
std::size_t segment_at(const std::vector<Segment>& segments, Nanos t);

// The used steps as a set of spans.
store::SpanSet used_time(const run::Run& run);

}  // namespace culprit::evidence
