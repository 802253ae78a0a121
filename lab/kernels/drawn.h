// Drawn numbers and weight matrices of them in every format, for checks and benchmarks: the same ones
// on every machine for a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "lab/number/matrix.h"

namespace culprit::lab {

// SplitMix64.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  // In [-1, 1), one in sixteen eight times as large.
  float number() {
    const auto unit = static_cast<float>(static_cast<std::int64_t>(bits() >> 40)) * 0x1p-23F - 1;
    return bits() % 16 == 0 ? 8 * unit : unit;
  }
  std::vector<float> numbers(std::int64_t n) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& value : x) value = number();
    return x;
  }

 private:
  std::uint64_t state_;
};

// Bytes whose first one lies `offset` past a multiple of 64 and whose last one is the last that may
// be read: a sanitizer sees a kernel that reads on.
class Placed {
 public:
  Placed(std::int64_t bytes, std::int64_t offset)
      : store_(static_cast<std::byte*>(
            ::operator new(static_cast<std::size_t>(bytes + offset), kAlignment))),
        data_(store_.get() + offset) {}
  std::byte* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> store_;
  std::byte* data_;
};

// The ways in which a linear layer's weights come.
struct DrawnKind {
  std::string_view name;
  Format format = Format::kF32;
  bool blocks = false;       // kE4m3: a scale per 128 x 128
  bool wide = false;         // kNvfp4: activations stay wide
  std::int64_t granule = 1;  // columns come in multiples of it
};
std::span<const DrawnKind> drawn_kinds();

struct DrawnMatrix {
  Matrix matrix;
  std::vector<Placed> parts;  // its bytes; its block scales, if it has some
};
DrawnMatrix draw_matrix(const DrawnKind& kind, std::int64_t rows, std::int64_t cols,
                        std::int64_t offset, Draw& draw);

}  // namespace culprit::lab
