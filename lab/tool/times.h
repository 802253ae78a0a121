// Steps' times in order of length, for medians and percentiles by the nearest rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/id.h"

namespace culprit::lab {

class Times {
 public:
  void add(Nanos time) {
    times_.insert(std::upper_bound(times_.begin(), times_.end(), time), time);
    sum_ += time;
  }
  bool empty() const { return times_.empty(); }
  std::size_t size() const { return times_.size(); }
  Nanos sum() const { return sum_; }
  Nanos median() const { return at(0.5); }
  Nanos p99() const { return at(0.99); }

 private:
  Nanos at(double share) const {
    const double rank = std::ceil(share * static_cast<double>(times_.size()));
    return times_.empty() ? 0 : times_[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  }

  std::vector<Nanos> times_;
  Nanos sum_ = 0;
};

}  // namespace culprit::lab
