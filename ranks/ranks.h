// Ranks: the processes (or threads) that run one model together, and what they tell each other. Every
// rank makes the same calls in the same order; a call returns when this rank's part of it is done.
// Sums are added up in the order of ranks, by each rank for itself from the same numbers, so that all
// have the same bits, run after run. Calls come from one thread at a time, whichever that is. A rank
// that is lost ends the others: by whoever started them, not here.
// Cost of a sum: every other rank's numbers come in once; messages are cut into pieces that caches hold.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace culprit {

class Ranks {
 public:
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string_view group() const = 0;  // what a trace calls it: "tp"; outlives this

  // Those on the same machine: this one's place among them, how many, the first one's rank.
  struct Local {
    int rank = 0, size = 1, first = 0;
  };
  virtual Local local() const = 0;

  // mine [count] of every rank to all [size, count]; count < 2^31. Bits are copied, never read.
  virtual void all_gather(const float* mine, std::int64_t count, float* all) = 0;
  virtual void barrier() = 0;
  // values [count] become the sum over the ranks. Allocates nothing.
  void all_reduce(float* values, std::int64_t count);

 protected:
  Ranks(int rank, int size);

 private:
  int rank_, size_;
  std::vector<float> gathered_;  // [size, piece]
};

}  // namespace culprit
