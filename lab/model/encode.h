// Random matrices in any Format, straight from their levels: what quantising their values gives, code
// for code, at the speed of a table for the formats that true-size models are made of (BF16, NVFP4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lab/model/levels.h"
#include "lab/number/matrix.h"

namespace culprit::lab {

// A matrix as rows of levels.
struct LevelMatrix {
  std::int64_t rows = 0, cols = 0;
  double deviation = 1;
  Level largest = kLargestLevel;  // of the tensor that this is (a part of): it sets NVFP4's scale
  std::function<void(std::int64_t row, std::span<Level> levels)> fill;
};

inline constexpr std::int64_t kFp8Block = 128;

// Bytes of a Matrix's data and of its block scales.
struct EncodedSize {
  std::int64_t data = 0, scales = 0;
};
EncodedSize encoded_size(Format format, std::int64_t rows, std::int64_t cols);

// Keeps its tables between matrices; one per thread.
class Encoder {
 public:
  Encoder();
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Rows [first, first + count) to `data` and `scales`, which are those rows' own. kE4m3: in blocks of
  // 128 x 128, so that `first` is a multiple of 128. The Matrix's `scale` is scale_of().
  void encode(const LevelMatrix& matrix, Format format, std::int64_t first, std::int64_t count,
              std::byte* data, std::byte* scales);
  static float scale_of(const LevelMatrix& matrix, Format format);

 private:
  struct Nvfp4Table;
  void encode_e4m3(const LevelMatrix& matrix, std::int64_t first, std::int64_t count,
                   std::byte* data, std::byte* scales);
  void encode_nvfp4(const LevelMatrix& matrix, std::span<const Level> row, std::uint8_t* codes,
                    std::uint8_t* scales);

  std::unique_ptr<Nvfp4Table> nvfp4_;
  double deviation_ = 0;  // that `values_` are for
  std::array<float, 256> values_{};
};

}  // namespace culprit::lab
