// Strong indices and the unit of time. A KernelId cannot index the table of ops: `ops[kernel_id]`
// does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace culprit {

using Nanos = std::int64_t;  // a time or a duration, integer nanoseconds

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index = kNone;

  Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr bool valid() const { return index != kNone; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a literal 0 in the generated comparison
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace culprit
