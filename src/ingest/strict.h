// Strict: is a text one JSON value to the strictest reader (RFC 8259: UTF-8, no raw control characters,
// no half of a surrogate pair, no number or word that JSON does not have)? One pass, no recursion;
// memory: a byte per level of nesting.
#pragma once

#include <cstddef>
#include <string_view>

namespace culprit::ingest {

bool is_strict_json(std::string_view text);
// The bytes of the value that `text` begins with, whatever stands behind it; 0 where that is no such
// JSON, or is cut off.
std::size_t strict_json_size(std::string_view text);

}  // namespace culprit::ingest
