#include <fmt/format.h>

#include "lab/files/bind.h"
#include "lab/model/encode.h"
#include "lab/number/fp4.h"

namespace culprit::lab {
namespace {

class Binder {
 public:
  explicit Binder(const Container& container) : container_(container) {}

  Status bind(Slot& slot) const {
    const Stored* const tensor = container_.find(slot.name);
    if (tensor == nullptr) return missing(slot.name);
    if (slot.vector != nullptr) {
      TRY(*slot.vector, floats(slot.name, *tensor, slot.rows));
      return Ok{};
    }
    Matrix& matrix = *slot.matrix;
    matrix.rows = slot.rows;
    matrix.cols = slot.cols;
    const bool packed = tensor->dtype == "U8";  // two codes to a byte
    const std::int64_t stored_cols = packed ? slot.cols / 2 : slot.cols;
    if (!has_shape(*tensor, {slot.rows, stored_cols}))
      return misfit(slot.name, *tensor,
                    fmt::format("is [{}], where the config asks for [{}, {}]",
                                fmt::join(tensor->shape, ", "), slot.rows, stored_cols));
    if (packed) return nvfp4(slot, *tensor, matrix);
    if (tensor->dtype == "F8_E4M3") return fp8(slot, *tensor, matrix);
    if (tensor->dtype == "BF16") return plain_matrix(slot.name, *tensor, Format::kBf16, matrix);
    if (tensor->dtype == "F16") return plain_matrix(slot.name, *tensor, Format::kF16, matrix);
    if (tensor->dtype == "F32") return plain_matrix(slot.name, *tensor, Format::kF32, matrix);
    return Error{Error::Code::kUnsupported,
                 fmt::format("tensor \"{}\" is {}", slot.name, tensor->dtype), tensor->where,
                 "the lab reads BF16, F16, F32, F8_E4M3 and NVFP4 (U8)"};
  }

 private:
  // ModelOpt: the scales lie beside the codes, under names of their own.
  Status nvfp4(const Slot& slot, const Stored& tensor, Matrix& matrix) const {
    if (slot.cols % kNvfp4Block != 0)
      return misfit(slot.name, tensor,
                    fmt::format("has rows of {}, no whole blocks of 16", slot.cols));
    const std::string scales = slot.name + "_scale", scale_2 = slot.name + "_scale_2";
    const Stored* const blocks = container_.find(scales);
    const Stored* const whole = container_.find(scale_2);
    if (blocks == nullptr) return missing(scales);
    if (whole == nullptr) return missing(scale_2);
    if (blocks->dtype != "F8_E4M3" || !has_shape(*blocks, {slot.rows, slot.cols / kNvfp4Block}))
      return misfit(
          scales, *blocks,
          fmt::format("is {} [{}], where [{}, {}] of F8_E4M3 belongs", blocks->dtype,
                      fmt::join(blocks->shape, ", "), slot.rows, slot.cols / kNvfp4Block));
    matrix.format = Format::kNvfp4;
    matrix.data = tensor.data;
    matrix.block_scales = blocks->data;
    TRY(matrix.scale, scale_at(scale_2, *whole, 0, 1));
    const std::string input = slot.name.substr(0, slot.name.rfind('.')) + ".input_scale";
    if (const Stored* const calibrated = container_.find(input)) {
      TRY(matrix.input_scale, scale_at(input, *calibrated, 0, 1));
    }
    return Ok{};
  }

  // DeepSeek: a scale per 128 x 128 values; or one for all of them.
  Status fp8(const Slot& slot, const Stored& tensor, Matrix& matrix) const {
    matrix.format = Format::kE4m3;
    matrix.data = tensor.data;
    const std::string blocks = slot.name + "_scale_inv", whole = slot.name + "_scale";
    if (const Stored* const one = container_.find(whole)) {
      TRY(matrix.scale, scale_at(whole, *one, 0, 1));
      return Ok{};
    }
    const Stored* const scales = container_.find(blocks);
    if (scales == nullptr) return missing(blocks);
    const std::int64_t down = (slot.rows + kFp8Block - 1) / kFp8Block;
    const std::int64_t across = (slot.cols + kFp8Block - 1) / kFp8Block;
    if (scales->dtype != "F32" || !has_shape(*scales, {down, across}))
      return misfit(blocks, *scales,
                    fmt::format("is {} [{}], where [{}, {}] of F32 belongs", scales->dtype,
                                fmt::join(scales->shape, ", "), down, across));
    Matrix aligned;
    TRY([[maybe_unused]] const Ok fits, plain_matrix(blocks, *scales, Format::kF32, aligned));
    matrix.block_scales = scales->data;
    matrix.scale_block = kFp8Block;
    return Ok{};
  }

  const Container& container_;
};

}  // namespace

Result<Weights> bind_hf(const Container& container, const ModelConfig& config) {
  const Binder binder(container);
  return bind_slots(config, Naming::kHf,
                    [&](Slot& slot, Weights& /*weights*/) { return binder.bind(slot); });
}

}  // namespace culprit::lab
