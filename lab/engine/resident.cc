#include "lab/engine/resident.h"

#include <cstring>

#include "lab/engine/memory.h"

namespace culprit::lab {
namespace {

struct Copy {
  const std::byte** place = nullptr;  // points at what is copied, then at the copy
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
};

std::vector<Copy> copies_of(Weights& weights, Carver& carver) {
  std::vector<Copy> copies;
  for (Matrix* const matrix : matrices_of(weights)) {
    const std::int64_t data = matrix->rows * matrix->row_bytes(), scales = matrix->bytes() - data;
    copies.push_back({&matrix->data, carver.take<std::byte>(data), data});
    if (scales > 0)
      copies.push_back({&matrix->block_scales, carver.take<std::byte>(scales), scales});
  }
  return copies;
}

}  // namespace

Result<Pages> make_resident(Weights& weights, Workers& workers) {
  Carver counter(nullptr);
  copies_of(weights, counter);
  TRY(Pages pages, Pages::reserve(counter.bytes()));
  Carver carver(pages.data());
  const std::vector<Copy> copies = copies_of(weights, carver);
  const bool tied = weights.embedding.data == weights.lm_head.data;
  workers.run(static_cast<std::int64_t>(copies.size()), [&](std::int64_t i, int) {
    const Copy& copy = copies[static_cast<std::size_t>(i)];
    std::memcpy(copy.to, *copy.place, static_cast<std::size_t>(copy.bytes));
    *copy.place = copy.to;
  });
  if (tied) weights.embedding = weights.lm_head;
  return pages;
}

}  // namespace culprit::lab
