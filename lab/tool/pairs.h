// Pairs: a fault, its fix, and what counts as naming it right. Each is two command lines of `lab bench`
// that differ in the fault alone, so that a reader may run either himself. Sizes in braces are drawn
// within ranges that suit this machine, log-uniformly, by seed; {threads} leaves the host a core of its
// own, for pairs in which it works beside the device.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/tool/options.h"

namespace culprit::lab {

// Which of a run's steps are measured.
enum class Measure : std::uint8_t {
  kMedian,  // of the decode steps
  kMean,    // what passes per decode step, stalls and prompts included
  kLargest  // the median of those with more requests than --batch
};

struct Draw {
  std::string_view name;
  std::int64_t low = 0, high = 0;
};

struct Models {
  std::string_view full, tiny;  // flags
};

struct Pair {
  std::string_view name, what;
  std::vector<std::string_view> suspects;  // any of them is right; empty: nobody is to be accused
  std::string_view option = {};            // of the suspect's fix; empty: its first
  Models model;                            // of both sides
  std::string_view common;                 // flags of both sides
  std::vector<Draw> draws = {}, tiny_draws = {};  // tiny_draws: those that differ on small models
  std::string_view before = {}, after = {};
  Measure measure = Measure::kMedian;
  // The fix leaves this share of the fault, as the suspect says its time goes (1 / 10 of a pool).
  double left = 0;
  // Without a suspect: what becomes of the time of the kernels of this owner, who is to have the
  // largest part of the step. None: nothing changes.
  std::string_view owner = {};
  double scale = 1;
};
std::span<const Pair> pairs();
// Error::kUsage for an unknown name, with the near one.
Result<const Pair*> pair_named(std::string_view name);

// A pair with its sizes drawn: command lines without "culprit lab bench".
struct DrawnPair {
  std::string before, after;
};
DrawnPair drawn(const Pair& pair, bool tiny, std::uint64_t seed);

}  // namespace culprit::lab
