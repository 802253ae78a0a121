// Inflater: compressed bytes in, text out, for Source. One per stream; not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/source.h"

namespace culprit {

class Inflater {
 public:
  // Gives the next compressed bytes: returns how many were put into the buffer, 0 at the end, -1 on
  // a read error.
  using Refill = std::function<std::int64_t(char* buffer, std::size_t size)>;
  virtual ~Inflater() = default;
  // Writes up to `size` bytes of text; fewer only at the end or at a fault.
  virtual std::size_t read(char* out, std::size_t size) = 0;
  virtual std::optional<SourceFault> fault() const = 0;
};

std::unique_ptr<Inflater> make_inflater(Compression compression, Inflater::Refill refill);

}  // namespace culprit
