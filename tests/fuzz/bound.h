// What must hold of whatever open_checkpoint() gives: an error says what, where and what to do; weights
// that it bound lie within the tensors that it checked, and can be read to the last row.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "lab/files/checkpoint.h"
#include "lab/model/slots.h"

namespace culprit::fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

// The bytes are those of a tensor, from its beginning on.
inline void must_lie_within(const lab::Container& container, const std::byte* data,
                            std::int64_t bytes) {
  for (const auto& [name, tensor] : container.tensors()) {
    const bool begins =
        !std::less<>()(data, tensor.data) && std::less<>()(data, tensor.data + tensor.bytes);
    if (begins) return must(data - tensor.data + bytes <= tensor.bytes);
  }
  std::abort();
}

inline void must_be_readable(const lab::Container& container, const lab::Matrix& matrix) {
  const std::int64_t data = matrix.rows * matrix.row_bytes();
  must_lie_within(container, matrix.data, data);
  if (matrix.block_scales != nullptr)
    must_lie_within(container, matrix.block_scales, matrix.bytes() - data);
  std::vector<float> row(static_cast<std::size_t>(matrix.cols));
  for (const std::int64_t r : {std::int64_t{0}, matrix.rows - 1})
    lab::dequantize_row(matrix, r, row.data());
}

inline void check(Result<lab::Checkpoint> opened, lab::Naming naming) {
  if (!opened.ok()) {
    const Error& error = opened.error();
    return must(!error.what.empty() && !error.where.empty() && !error.hint.empty());
  }
  lab::Weights& weights = opened->weights;
  must(lab::check(weights.config, "bound").ok());
  must(std::ssize(weights.layers) == weights.config.layers && !weights.lm_head.empty());
  std::vector<lab::Slot> slots = lab::outer_slots(weights, naming);
  for (std::int64_t layer = 0; layer < weights.config.layers; ++layer)
    for (lab::Slot& slot : lab::layer_slots(weights, layer, naming))
      slots.push_back(std::move(slot));
  for (const lab::Slot& slot : slots) {
    if (slot.vector != nullptr) {
      must(std::ssize(*slot.vector) == slot.rows);
    } else if (!slot.matrix->empty()) {
      must_be_readable(*opened->container, *slot.matrix);
    } else {  // a GGUF that holds kv_b whole
      must(slot.role == lab::Role::kKeyB || slot.role == lab::Role::kValueB);
    }
  }
  for (const lab::LayerWeights& layer : weights.layers)
    if (!layer.mla.kv_b.empty()) must_be_readable(*opened->container, layer.mla.kv_b);
}

}  // namespace culprit::fuzz
