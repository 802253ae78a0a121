#include "profile/json_text.h"

#include <array>
#include <charconv>

namespace culprit::profile::detail {
namespace {

// Bytes of the UTF-8 character that begins `text`; 0: none does.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto more = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0), next = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4 || !more(1)) return 0;
  if (lead < 0xe0) return 2;
  if (!more(2)) return 0;
  if (lead < 0xf0) return (lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ? 0 : 3;
  if (!more(3)) return 0;
  return (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f) ? 0 : 4;
}

}  // namespace

void JsonText::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

JsonText& JsonText::raw(std::string_view text) {
  constexpr std::size_t kFull = std::size_t{1} << 16;
  buffer_ += text;
  if (buffer_.size() >= kFull) flush();
  return *this;
}

void JsonText::escape(unsigned char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    buffer_ += '\\';
    buffer_ += static_cast<char>(c);
  } else {
    buffer_ += "\\u00";
    buffer_ += kHex[c >> 4U];
    buffer_ += kHex[c & 15U];
  }
}

JsonText& JsonText::quoted(std::string_view text) {
  buffer_ += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t size = character(text);
    if (c < 0x20 || c == '"' || c == '\\')
      escape(c);
    else
      buffer_ += size > 0 ? text.substr(0, size) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(size > 0 ? size : 1);
  }
  return raw("\"");
}

JsonText& JsonText::number(std::int64_t value) {
  std::array<char, 24> digits{};
  const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return raw({digits.data(), done.ptr});
}

JsonText& JsonText::micros(Nanos ns) {
  if (ns < 0) {
    raw("-");
    ns = -ns;
  }
  number(ns / 1000);
  const auto rest = static_cast<unsigned>(ns % 1000);
  const std::array<char, 4> fraction{'.', static_cast<char>('0' + rest / 100),
                                     static_cast<char>('0' + rest / 10 % 10),
                                     static_cast<char>('0' + rest % 10)};
  return raw({fraction.data(), fraction.size()});
}

}  // namespace culprit::profile::detail
