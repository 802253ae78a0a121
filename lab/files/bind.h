// From the tensors of a container to a model's weights: each slot of the model is looked up by its name
// and held against the shape that the config states. An error names tensor, file and byte.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/files/checkpoint.h"
#include "lab/model/slots.h"

namespace culprit::lab {

Result<Weights> bind_hf(const Container& container, const ModelConfig& config);
Result<Weights> bind_gguf(const Container& container, const ModelConfig& config);

// What the two have in common.

// Binds every slot, layer by layer, until one fails.
Result<Weights> bind_slots(const ModelConfig& config, Naming naming,
                           const std::function<Status(Slot&, Weights&)>& bind);
Error missing(std::string_view name);  // without a place: that is the checkpoint as a whole
Error misfit(std::string_view name, const Stored& tensor, std::string_view what);
// kHf keeps leading extents of 1, GGUF may drop them: both forms are the same shape.
bool has_shape(const Stored& tensor, std::initializer_list<std::int64_t> shape);
// A plain matrix (F32, F16, BF16) where it lies; kernels read it by its own type, so that it must be
// aligned to that.
Status plain_matrix(std::string_view name, const Stored& tensor, Format format, Matrix& matrix);
// F32, F16 or BF16 at any address, as floats.
Result<std::vector<float>> floats(std::string_view name, const Stored& tensor, std::int64_t count);
// Value `index` of a tensor of `count` scales; finite, not below zero.
Result<float> scale_at(std::string_view name, const Stored& tensor, std::int64_t index,
                       std::int64_t count);

}  // namespace culprit::lab
