// Ranks that are threads of one process: each makes its calls from a thread of its own. For tests, and
// the plainest form of what the calls mean.
#pragma once

#include <barrier>
#include <memory>
#include <vector>

#include "ranks/ranks.h"

namespace culprit {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size);
  int size() const { return static_cast<int>(ranks_.size()); }
  Ranks& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  class One;
  std::barrier<> meeting_;
  std::vector<const float*> given_;  // by rank, between two meetings
  std::vector<std::unique_ptr<Ranks>> ranks_;
};

}  // namespace culprit
