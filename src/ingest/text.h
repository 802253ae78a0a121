// Text: JSON string bodies to clean UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace culprit::ingest {

// Undoes JSON escapes into `out`. False: some escape is not one of JSON's (an unescaped Windows
// path, say); then every backslash is taken literally.
bool unescape(std::string_view body, std::string& out);
// Valid UTF-8 without control characters?
bool is_clean(std::string_view text);
// The text with U+FFFD for every invalid byte and every control character.
std::string cleaned(std::string_view text);

}  // namespace culprit::ingest
