// Numbers of trace events from their decimal text, never through a double: an absolute epoch in
// microseconds with three decimals needs more than 53 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/id.h"

namespace culprit::ingest {

// "123", "123.456", "4.9e12", "-1.5" in microseconds to nanoseconds; digits beyond the nanosecond
// round half away from zero. None: not a number, or outside +-2^62 ns.
std::optional<Nanos> parse_micros(std::string_view text);
// An integer; a decimal or exponent is accepted when its value is whole. None: not an integer or
// beyond 64 bits signed.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace culprit::ingest
