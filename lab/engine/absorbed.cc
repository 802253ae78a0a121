#include "lab/engine/absorbed.h"

#include <cstring>

#include "lab/number/bf16.h"

namespace culprit::lab {
namespace {

// A head's matrix in memory of our own, written row by row.
class Copy {
 public:
  Copy(Carver& carver, Format like, std::int64_t rows, std::int64_t cols) {
    const bool wide = like == Format::kF32 || like == Format::kF16;
    matrix_ = {.format = wide ? Format::kF32 : Format::kBf16, .rows = rows, .cols = cols};
    data_ = carver.take<std::byte>(rows * cols * (wide ? 4 : 2));
    matrix_.data = data_;
  }
  void set(std::int64_t row, std::int64_t col, float value) {
    const std::int64_t at = row * matrix_.cols + col;
    if (matrix_.format == Format::kF32) {
      std::memcpy(data_ + at * 4, &value, 4);
    } else {
      const Bf16 narrow = to_bf16(value);
      std::memcpy(data_ + at * 2, &narrow, 2);
    }
  }
  const Matrix& matrix() const { return matrix_; }
  bool counting() const { return data_ == nullptr; }

 private:
  Matrix matrix_;
  std::byte* data_ = nullptr;
};

AbsorbedLayer split(const MlaWeights& weights, const ModelConfig& config, std::int64_t heads,
                    Carver& carver) {
  AbsorbedLayer out;
  const std::int64_t latent = config.kv_lora_rank, nope = config.nope_dim, v = config.v_dim;
  std::vector<float> row(static_cast<std::size_t>(latent));
  for (std::int64_t head = 0; head < heads; ++head) {
    Copy k_b(carver, weights.kv_b.format, latent, nope);
    Copy v_b(carver, weights.kv_b.format, v, latent);
    for (std::int64_t i = 0; i < nope + v && !k_b.counting(); ++i) {
      dequantize_row(weights.kv_b, head * (nope + v) + i, row.data());
      for (std::int64_t l = 0; l < latent; ++l) {
        const float value = row[static_cast<std::size_t>(l)];
        if (i < nope)
          k_b.set(l, i, value);
        else
          v_b.set(i - nope, l, value);
      }
    }
    out.k_b.push_back(k_b.matrix());
    out.v_b.push_back(v_b.matrix());
  }
  return out;
}

AbsorbedLayer borrowed(const MlaWeights& weights, const ModelConfig& config, std::int64_t heads) {
  AbsorbedLayer out;
  for (std::int64_t head = 0; head < heads; ++head) {
    out.k_b.push_back(weights.k_b.slice(head * config.kv_lora_rank, config.kv_lora_rank));
    out.v_b.push_back(weights.v_b.slice(head * config.v_dim, config.v_dim));
  }
  return out;
}

}  // namespace

Result<Absorbed> Absorbed::make(const Weights& weights, std::int64_t heads) {
  Absorbed absorbed;
  const auto fill = [&](Carver carver) {
    absorbed.layers_.clear();
    for (const LayerWeights& layer : weights.layers)
      absorbed.layers_.push_back(layer.mla.kv_b.empty()
                                     ? borrowed(layer.mla, weights.config, heads)
                                     : split(layer.mla, weights.config, heads, carver));
    return carver.bytes();
  };
  TRY(absorbed.arena_, Arena::make(fill(Carver(nullptr)), "the absorbed kv_b"));
  fill(Carver(absorbed.arena_.data()));
  return absorbed;
}

}  // namespace culprit::lab
