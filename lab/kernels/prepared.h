// Where the parts of a prepared token lie, as offsets in bytes from its beginning. `cols` is padded
// to a multiple of kPadding values, and what is added is zero. For whoever fills or reads one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::lab {

inline constexpr std::int64_t kPadding = 256;
inline std::int64_t padded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// Elements 2i and 2i + 1 of a row of FP4 weights share byte i. So the activations, doubled codes in
// int8, lie in two planes, and lane j of a dot product adds up elements 8j .. 8j + 7: half a block.
struct Nvfp4Layout {
  // What is added to a weight's doubled code where the hardware wants it unsigned; `starts` takes
  // it back: minus the bias times the sum of a lane's activations.
  static constexpr int kBias = 16;
  explicit Nvfp4Layout(std::int64_t cols) : columns(padded(cols, kPadding)) {}
  std::int64_t columns;
  std::int64_t odd() const { return columns / 2; }               // int8 [columns / 2]
  std::int64_t starts() const { return columns; }                // int32 [columns / 8]
  std::int64_t scales() const { return columns + columns / 2; }  // float [columns / 8]: per lane
  std::int64_t bytes() const { return 2 * columns; }
};

// int8 [columns], a float scale per `block` of them, int32 sums of 32 each.
struct Int8Layout {
  Int8Layout(std::int64_t cols, std::int64_t block_values)
      : columns(padded(cols, kPadding)), block(block_values) {}
  std::int64_t columns, block;
  std::int64_t sums() const { return columns; }
  std::int64_t scales() const { return columns + columns / 8; }
  std::int64_t bytes() const { return padded(scales() + columns / block * 4, 64); }
};

inline double wide(float x) { return static_cast<double>(x); }  // said aloud, as clang wants it

template <class T>
const T* part(const std::byte* token, std::int64_t offset = 0) {
  return reinterpret_cast<const T*>(token + offset);
}
template <class T>
T* part(std::byte* token, std::int64_t offset = 0) {
  return reinterpret_cast<T*>(token + offset);
}

}  // namespace culprit::lab
