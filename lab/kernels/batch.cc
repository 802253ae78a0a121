#include "lab/kernels/batch.h"

#include "lab/kernels/prepared.h"

namespace culprit::lab {

Activations activations_for(const Matrix& weights) {
  switch (weights.format) {
    case Format::kF32:
    case Format::kF16:
      return Activations::kFloat;
    case Format::kBf16:
    case Format::kE4m3:
      return Activations::kBf16;
    case Format::kNvfp4:
      return weights.input_scale > 0 ? Activations::kNvfp4 : Activations::kFloat;
    case Format::kQ4_K:
    case Format::kQ6_K:
      return Activations::kInt8By256;
    case Format::kQ8_0:
    case Format::kGgmlMxfp4:
    case Format::kGgmlNvfp4:
      break;
  }
  return Activations::kInt8By32;
}

std::int64_t prepared_bytes(Activations kind, std::int64_t cols) {
  switch (kind) {
    case Activations::kFloat:
      return padded(cols, kPadding) * 4;
    case Activations::kBf16:
      return padded(cols, kPadding) * 2;
    case Activations::kNvfp4:
      return Nvfp4Layout(cols).bytes();
    case Activations::kInt8By32:
      return Int8Layout(cols, 32).bytes();
    case Activations::kInt8By256:
      break;
  }
  return Int8Layout(cols, 256).bytes();
}

}  // namespace culprit::lab
