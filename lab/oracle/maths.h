// The oracle's small formulas, each as a paper states it; float64, nothing in place of clarity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/model/config.h"

namespace culprit::lab::maths {

using Vector = std::vector<double>;

double dot(const double* a, const double* b, std::int64_t count);
Vector rms_norm(std::span<const double> x, const std::vector<float>& gains, double eps);
Vector layer_norm(std::span<const double> x, const std::vector<float>& gains,
                  const std::vector<float>& biases, double eps);
Vector softmax(Vector scores);
// Indices of the `count` largest, the largest first; of equal ones the lower index first.
std::vector<std::int64_t> largest(const Vector& values, std::int64_t count);
// Rotates the pairs of x[0, dim) by the angles of `position`, yarn's stretching included.
void rope(double* x, std::int64_t dim, std::int64_t position, RopeStyle style,
          const ModelConfig& config);
// sum over rows of softmax(scale x q . key) x value.
struct Attended {
  std::span<const double> key, value;
};
Vector attend(std::span<const double> q, const std::vector<Attended>& rows, double scale);

}  // namespace culprit::lab::maths
