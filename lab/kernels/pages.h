// Memory from the system in huge pages where it gives them (a stream over 4 KB pages misses the TLB
// at each), zeroed, at a multiple of 2 MB. For buffers that no cache holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace culprit::lab {

class Pages {
 public:
  // `bytes` is rounded up to 2 MB. Nothing is touched yet: who writes first decides where it lies.
  static Result<Pages> reserve(std::int64_t bytes);
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Unmap {
    std::int64_t bytes;
    void operator()(void* mapping) const;
  };
  Pages(void* mapping, std::int64_t mapped, std::byte* data, std::int64_t bytes)
      : mapping_(mapping, Unmap{mapped}), data_(data), bytes_(bytes) {}
  std::unique_ptr<void, Unmap> mapping_;
  std::byte* data_;
  std::int64_t bytes_;
};

}  // namespace culprit::lab
