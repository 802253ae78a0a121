// The numbers of a random model. A tensor's values are one of 256 levels each, drawn evenly: the
// quantiles of a normal distribution of the tensor's own deviation, rounded to BF16, so that F32 and
// BF16 hold the same model. Which level an element has is a function of seed, name and index alone:
// any part can be made at any time, in any order, by any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace culprit::lab {

// Bit 7 is the sign, bits 0 to 6 grow with the magnitude.
using Level = std::uint8_t;
inline constexpr Level kLargestLevel = 127;

// Each level's value for a deviation, BF16 without remainder. Symmetric; none is 0.
std::array<float, 256> level_values(double deviation);

class LevelSource {
 public:
  LevelSource(std::uint64_t seed, std::string_view name);
  // The levels of elements [first, first + levels.size()) of the tensor, row by row.
  void fill(std::int64_t first, std::span<Level> levels) const;
  Level at(std::int64_t index) const;

 private:
  std::uint64_t eight(std::uint64_t block) const;  // levels of elements 8 x block to + 7, low first
  std::uint64_t key_;
};

// The largest magnitude among them, 0 to 127; stops looking once it is 127.
Level largest_magnitude(std::span<const Level> levels);

}  // namespace culprit::lab
