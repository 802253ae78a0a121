#include "lab/engine/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace culprit::lab {

RopeTable::RopeTable(const ModelConfig& config, std::int64_t dim) {
  const double width = static_cast<double>(dim), base = config.rope_theta;
  for (std::int64_t pair = 0; pair < dim / 2; ++pair)
    frequencies_.push_back(std::pow(base, -2.0 * static_cast<double>(pair) / width));
  if (!config.yarn) return;
  const Yarn& yarn = *config.yarn;
  // Pairs that turn often keep their angles, those that turn less than once are stretched.
  const auto pair_of = [&](double turns) {
    return width * std::log(yarn.original_positions / (2 * std::numbers::pi * turns)) /
           (2 * std::log(base));
  };
  const double first = std::max(0.0, std::floor(pair_of(yarn.beta_fast)));
  const double last = std::min(width - 1, std::ceil(pair_of(yarn.beta_slow)));
  const double ramp = last > first ? last - first : 0.001;
  for (std::size_t pair = 0; pair < frequencies_.size(); ++pair) {
    const double share = std::clamp((static_cast<double>(pair) - first) / ramp, 0.0, 1.0);
    frequencies_[pair] *= 1 - share + share / yarn.factor;
  }
  const auto mscale = [&](double weight) {
    return yarn.factor > 1 ? 1 + 0.1 * weight * std::log(yarn.factor) : 1.0;
  };
  magnitude_ = mscale(yarn.mscale) / mscale(yarn.mscale_all_dim);
}

void RopeTable::carve(Carver& carver, std::int64_t rows) {
  cos_ = carver.take<float>(rows * pairs());
  sin_ = carver.take<float>(rows * pairs());
}

void RopeTable::set(std::int64_t row, std::int64_t position) {
  for (std::int64_t pair = 0; pair < pairs(); ++pair) {
    const double angle =
        static_cast<double>(position) * frequencies_[static_cast<std::size_t>(pair)];
    cos_[row * pairs() + pair] = static_cast<float>(magnitude_ * std::cos(angle));
    sin_[row * pairs() + pair] = static_cast<float>(magnitude_ * std::sin(angle));
  }
}

}  // namespace culprit::lab
