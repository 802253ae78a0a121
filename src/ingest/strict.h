// Strict: is a text one JSON value to the strictest reader (RFC 8259: UTF-8, no raw control characters,
// no half of a surrogate pair, no number or word that JSON does not have)? One pass, no recursion;
// memory: a byte per level of nesting.
#pragma once

#include <string_view>

namespace culprit::ingest {

bool is_strict_json(std::string_view text);

}  // namespace culprit::ingest
