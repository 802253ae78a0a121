// Rotary positions of a step: cosines and sines of each row's angles, worked out in double once per step
// and used by every layer. Stretched positions: YaRN, as in DeepSeek-V3 (ramp between beta_fast and
// beta_slow turns, both tables times mscale / mscale_all_dim).
#pragma once

#include <cstdint>
#include <vector>

#include "lab/engine/memory.h"
#include "lab/model/config.h"

namespace culprit::lab {

class RopeTable {
 public:
  RopeTable(const ModelConfig& config, std::int64_t dim);
  void carve(Carver& carver, std::int64_t rows);
  void set(std::int64_t row, std::int64_t position);  // about 1 us
  const float* cos(std::int64_t row) const { return cos_ + row * pairs(); }
  const float* sin(std::int64_t row) const { return sin_ + row * pairs(); }
  std::int64_t dim() const { return 2 * pairs(); }

 private:
  std::int64_t pairs() const { return static_cast<std::int64_t>(frequencies_.size()); }

  std::vector<double> frequencies_;  // radians per position of each pair
  double magnitude_ = 1;
  float *cos_ = nullptr, *sin_ = nullptr;  // [rows, dim / 2]
};

}  // namespace culprit::lab
