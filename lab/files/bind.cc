#include "lab/files/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lab/files/layout.h"
#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

template <class Value>
Value load(const Stored& tensor, std::int64_t i) {
  Value value;
  std::memcpy(&value, tensor.data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

// Whether it is `count` floats of a kind that float_at() reads.
Status holds(std::string_view name, const Stored& tensor, std::int64_t count) {
  if (product_of(tensor.shape) != count)
    return misfit(name, tensor,
                  fmt::format("of shape [{}] does not hold the {} values of the config",
                              fmt::join(tensor.shape, ", "), count));
  if (tensor.dtype != "F32" && tensor.dtype != "BF16" && tensor.dtype != "F16")
    return misfit(name, tensor, fmt::format("is {}, not F32, F16 or BF16", tensor.dtype));
  return Ok{};
}

float float_at(const Stored& tensor, std::int64_t i) {
  if (tensor.dtype == "F32") return load<float>(tensor, i);
  if (tensor.dtype == "BF16") return from_bf16(load<Bf16>(tensor, i));
  return from_half(load<std::uint16_t>(tensor, i));
}

}  // namespace

Result<Weights> bind_slots(const ModelConfig& config, Naming naming,
                           const std::function<Status(Slot&, Weights&)>& bind) {
  Weights weights;
  weights.config = config;
  const auto bind_all = [&](std::vector<Slot> slots) -> Status {
    for (Slot& slot : slots) {
      TRY([[maybe_unused]] const Ok bound, bind(slot, weights));
    }
    return Ok{};
  };
  TRY([[maybe_unused]] const Ok outer, bind_all(outer_slots(weights, naming)));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    weights.layers.emplace_back();
    TRY([[maybe_unused]] const Ok bound, bind_all(layer_slots(weights, layer, naming)));
  }
  if (config.tied_embeddings) weights.lm_head = weights.embedding;
  return weights;
}

Error missing(std::string_view name) {
  return {Error::Code::kBadInput, fmt::format("tensor \"{}\" is missing", name), "",
          "the config asks for it; fetch all files of the checkpoint"};
}

Error misfit(std::string_view name, const Stored& tensor, std::string_view what) {
  return {Error::Code::kBadInput, fmt::format("tensor \"{}\" {}", name, what), tensor.where,
          "config and weights are not of the same model, or the file is damaged"};
}

bool has_shape(const Stored& tensor, std::initializer_list<std::int64_t> shape) {
  const auto inner = [](auto begin, auto end) {
    return std::find_if(begin, end, [](std::int64_t extent) { return extent != 1; });
  };
  return std::equal(inner(tensor.shape.begin(), tensor.shape.end()), tensor.shape.end(),
                    inner(shape.begin(), shape.end()), shape.end());
}

Status plain_matrix(std::string_view name, const Stored& tensor, Format format, Matrix& matrix) {
  const std::uintptr_t alignment = format == Format::kF32 ? 4 : 2;
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0)
    return misfit(name, tensor, fmt::format("of {} lies at an odd byte", tensor.dtype));
  matrix.format = format;
  matrix.data = tensor.data;
  return Ok{};
}

Result<std::vector<float>> floats(std::string_view name, const Stored& tensor, std::int64_t count) {
  TRY([[maybe_unused]] const Ok held, holds(name, tensor, count));
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = float_at(tensor, i);
  return values;
}

Result<float> scale_at(std::string_view name, const Stored& tensor, std::int64_t index,
                       std::int64_t count) {
  TRY([[maybe_unused]] const Ok held, holds(name, tensor, count));
  const float value = float_at(tensor, index);
  if (!std::isfinite(value) || value < 0)
    return misfit(name, tensor, fmt::format("is {}, no scale", value));
  return value;
}

}  // namespace culprit::lab
