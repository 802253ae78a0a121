#include "ranks/ranks.h"

#include <algorithm>

namespace culprit {
namespace {

constexpr std::int64_t kPiece = 32 << 10;  // floats: 128 KB of each rank

}  // namespace

Ranks::Ranks(int rank, int size)
    : rank_(rank), size_(size), gathered_(static_cast<std::size_t>(size * kPiece)) {}

void Ranks::all_reduce(float* values, std::int64_t count) {
  for (std::int64_t first = 0; first < count; first += kPiece) {
    const std::int64_t piece = std::min(kPiece, count - first);
    all_gather(values + first, piece, gathered_.data());
    std::copy_n(gathered_.data(), piece, values + first);
    for (std::int64_t rank = 1; rank < size_; ++rank) {
      const float* const part = gathered_.data() + rank * piece;
      for (std::int64_t i = 0; i < piece; ++i) values[first + i] += part[i];
    }
  }
}

}  // namespace culprit
