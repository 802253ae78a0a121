// What the checks share: the keeping of the worst error.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lab/kernels/check.h"
#include "lab/kernels/drawn.h"
#include "lab/kernels/kernels.h"

namespace culprit::lab {

class Worst {
 public:
  Worst(std::string kernel, std::string format, double tolerance)
      : check_{std::move(kernel), std::move(format), 0, tolerance, 0} {}
  void see(float got, float want, float magnitude) {
    ++check_.numbers;
    if (std::isnan(want) && std::isnan(got)) return;
    if (got == want) return;
    const double difference = static_cast<double>(got) - static_cast<double>(want);
    const double error = std::fabs(difference) / (static_cast<double>(magnitude) + 1e-30);
    check_.worst = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                     : std::fmax(check_.worst, error);
  }
  void see_same(bool same) {
    ++check_.numbers;
    differ_ += same ? 0 : 1;
    check_.worst = static_cast<double>(differ_) / static_cast<double>(check_.numbers);
  }
  operator KernelCheck() const { return check_; }  // NOLINT: what it is for

 private:
  KernelCheck check_;
  std::int64_t differ_ = 0;
};

inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

using Checks = std::vector<KernelCheck>;
void check_linear(const Kernels& fast, Checks& checks);
void check_rows(const Kernels& fast, Checks& checks);
void check_attention(const Kernels& fast, Checks& checks);

}  // namespace culprit::lab
