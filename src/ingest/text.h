// Text: JSON string bodies to clean UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace culprit::ingest {

// Undoes JSON escapes into `out`. False: the writer did not escape its backslashes, and every one is taken literally. Signs of
// that: an escape that JSON does not have; a drive in front of a lone backslash (C:\temp); a Python file and line in whose path
// an escape would be a line break, a tab or the like (torch\nn\functional.py(9)). Half a surrogate pair becomes a byte
// that is no UTF-8.
bool unescape(std::string_view body, std::string& out);
// Valid UTF-8 without control characters?
bool is_clean(std::string_view text);
// The text with U+FFFD for every invalid byte and every control character.
std::string cleaned(std::string_view text);

}  // namespace culprit::ingest
