#include "lab/kernels/batch.h"

#include "lab/kernels/prepared.h"
#include "lab/number/bf16.h"

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

double Batch::number(std::int64_t t, std::int64_t i) const {
  const std::byte* const row = token(t);
  switch (kind) {
    case Activations::kFloat:
      return wide(part<float>(row)[i]);
    case Activations::kBf16:
      return wide(from_bf16(part<Bf16>(row)[i]));
    case Activations::kNvfp4: {
      const Nvfp4Layout at(cols);
      const auto* const plane = part<std::int8_t>(row, i % 2 == 0 ? 0 : at.odd());
      const std::int8_t* const doubled = plane + i / 2;
      return 0.5 * *doubled * wide(part<float>(row, at.scales())[i / 8]) * wide(input_scale);
    }
    case Activations::kInt8By32:
    case Activations::kInt8By256:
      break;
  }
  const Int8Layout at(cols, kind == Activations::kInt8By32 ? 32 : 256);
  return wide(part<float>(row, at.scales())[i / at.block]) * part<std::int8_t>(row)[i];
}

}  // namespace culprit::lab
