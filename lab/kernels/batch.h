// The input of linear layers, made ready once for the weights that it will meet. One token's bytes
// lie together in `prepared_bytes`, a multiple of 64; the layout is the same on every instruction
// set. Every part is padded with zeros (prepared.h), so that kernels may read whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/number/matrix.h"

namespace culprit::lab {

enum class Activations : std::uint8_t {
  kFloat,      // F32, F16 and W4A16: as they are
  kBf16,       // BF16 and E4M3: rounded to BF16
  kNvfp4,      // NVFP4 with an input scale: codes and block scales, by number/fp4.h code for code
  kInt8By32,   // Q8_0, MXFP4 and NVFP4 of ggml: int8, a float scale per 32
  kInt8By256,  // Q4_K and Q6_K: int8, a float scale per 256, sums of 16
};
Activations activations_for(const Matrix& weights);

// Bytes that one prepared token takes; buffers begin at a multiple of 64.
std::int64_t prepared_bytes(Activations kind, std::int64_t cols);

// Tokens made ready. Borrowed: the buffer must outlive it.
struct Batch {
  Activations kind = Activations::kFloat;
  std::int64_t tokens = 0, cols = 0;
  const std::byte* data = nullptr;     // [rows, prepared_bytes(kind, cols)]
  const std::int32_t* rows = nullptr;  // [tokens] the row of each token; none: in order
  float input_scale = 1;               // kNvfp4: what `prepare` was given

  const std::byte* token(std::int64_t t) const {
    return data + (rows != nullptr ? rows[t] : t) * prepared_bytes(kind, cols);
  }
  double number(std::int64_t t, std::int64_t i) const;  // what value i of token t stands for
};

}  // namespace culprit::lab
