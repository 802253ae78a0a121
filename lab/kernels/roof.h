// What this machine's memory moves, which is what a decode step is held against: bytes per second of
// reading, writing and copying (bytes read + bytes written) by pinned threads that share a buffer of
// at least 8 x the last-level cache in chunks of 1 MB. Of each, the best of the sensible ways: plain,
// and with stores that pass the caches. One call is one pass over the buffer, so that a benchmark can
// put its own passes between them and compare medians of one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/kernels/kernels.h"
#include "lab/kernels/pages.h"
#include "lab/kernels/team.h"

namespace culprit::lab {

// Bytes, from sysfs or sysconf; an error where neither says, never a guess.
Result<std::int64_t> last_level_cache();

enum class Move : std::uint8_t { kRead, kWrite, kCopy };

class Roof {
 public:
  static constexpr std::int64_t kCaches = 8;
  // bytes 0: kCaches x the last-level cache, for each of two buffers.
  static Result<Roof> prepare(Team& team, Isa isa, std::int64_t bytes = 0);
  std::int64_t bytes() const { return from_.bytes(); }

  struct Way {
    Move move;
    std::string name;           // "plain", "past the caches"
    std::vector<double> rates;  // bytes per second of each pass so far
  };
  void pass();    // one of every way
  void forget();  // the passes so far
  const std::vector<Way>& ways() const { return ways_; }
  double best(Move move) const;  // the largest median among its ways

 private:
  Roof(Team& team, const Kernels& table, Pages from, Pages to);
  double seconds(Move move, bool plain);
  Team* team_;
  const Kernels* table_;
  Pages from_, to_;
  std::vector<Way> ways_;
};

}  // namespace culprit::lab
