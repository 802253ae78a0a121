// Memory of an engine: taken once, touched once, never grown. An Arena is one block, aligned to 64
// bytes, zeroed and resident, on huge pages where it is large; a Carver hands out its parts. Carving
// from no block only counts, so that one list of parts gives the size and then the places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/kernels/pages.h"

namespace culprit::lab {

// What the machine has in all; 0: it does not say.
std::int64_t machine_bytes();

class Arena {
 public:
  // `what` names it in the error: more than the machine has, or none to be had.
  static Result<Arena> make(std::int64_t bytes, const std::string& what);
  std::byte* data() const { return pages_ ? pages_->data() : nullptr; }
  std::int64_t bytes() const { return pages_ ? pages_->bytes() : 0; }

 private:
  std::optional<Pages> pages_;
};

class Carver {
 public:
  explicit Carver(std::byte* block) : block_(block) {}

  // Room for `count` values, from a multiple of 64 on. Null while only counting.
  template <class T>
  T* take(std::int64_t count) {
    const std::int64_t first = bytes_;
    const std::int64_t size = count * static_cast<std::int64_t>(sizeof(T));
    bytes_ = (first + size + 63) / 64 * 64;
    return block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + first);
  }
  std::int64_t bytes() const { return bytes_; }  // taken so far

 private:
  std::byte* block_;
  std::int64_t bytes_ = 0;
};

}  // namespace culprit::lab
