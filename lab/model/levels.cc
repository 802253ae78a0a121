#include "lab/model/levels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

// splitmix64's finaliser: every bit of the input moves every bit of the output.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

// The value that a share `p` of |normal| lies below: erf is inverted by halving, as there is no need
// for speed.
double half_normal_quantile(double p) {
  double low = 0, high = 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return low;
}

std::array<double, 128> magnitudes() {
  std::array<double, 128> result{};
  for (std::size_t m = 0; m < result.size(); ++m)
    result[m] = half_normal_quantile((static_cast<double>(m) + 0.5) / 128);
  return result;
}

}  // namespace

std::array<float, 256> level_values(double deviation) {
  static const std::array<double, 128> kMagnitudes = magnitudes();
  std::array<float, 256> values{};
  for (std::size_t m = 0; m < kMagnitudes.size(); ++m) {
    values[m] = from_bf16(to_bf16(static_cast<float>(kMagnitudes[m] * deviation)));
    values[m + 128] = -values[m];
  }
  return values;
}

LevelSource::LevelSource(std::uint64_t seed, std::string_view name) : key_(mix(seed + 1)) {
  for (const char c : name) key_ = mix(key_ ^ static_cast<unsigned char>(c));
}

std::uint64_t LevelSource::eight(std::uint64_t block) const {
  return mix(key_ + block * 0x9e3779b97f4a7c15U);
}

Level LevelSource::at(std::int64_t index) const {
  const auto i = static_cast<std::uint64_t>(index);
  return static_cast<Level>(eight(i / 8) >> (i % 8 * 8));
}

void LevelSource::fill(std::int64_t first, std::span<Level> levels) const {
  std::size_t done = 0;
  while (done < levels.size() && (static_cast<std::size_t>(first) + done) % 8 != 0) {
    levels[done] = at(first + static_cast<std::int64_t>(done));
    ++done;
  }
  std::uint64_t block = (static_cast<std::uint64_t>(first) + done) / 8;
  static_assert(std::endian::native == std::endian::little, "as at() takes the bytes");
  for (; done + 8 <= levels.size(); done += 8, ++block) {
    const std::uint64_t word = eight(block);
    std::memcpy(&levels[done], &word, sizeof word);
  }
  for (; done < levels.size(); ++done) levels[done] = at(first + static_cast<std::int64_t>(done));
}

Level largest_magnitude(std::span<const Level> levels) {
  Level largest = 0;
  for (const Level level : levels) {
    largest = std::max<Level>(largest, level & kLargestLevel);
    if (largest == kLargestLevel) break;
  }
  return largest;
}

}  // namespace culprit::lab
