#include "ingest/strict.h"

#include <array>
#include <cstdint>
#include <string>

namespace culprit::ingest {
namespace {

// Bytes that may stand in a string by themselves.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

class Strict {
 public:
  explicit Strict(std::string_view text)
      : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}

  bool at_end() {
    skip_space();
    return p_ == end_;
  }
  std::size_t read() const { return static_cast<std::size_t>(p_ - begin_); }

  // One value, with the white space in front of it.
  bool value() {
    for (;;) {
      skip_space();
      if (p_ == end_) return false;
      if (*p_ == '{' || *p_ == '[') {
        const char close = *p_ == '{' ? '}' : ']';
        ++p_;
        skip_space();
        if (!take(close)) {
          open_.push_back(close);
          if (close == '}' && !key()) return false;
          continue;
        }
      } else if (*p_ == '"' ? !string() : !scalar()) {
        return false;
      }
      bool more = false;
      if (!close_values(more)) return false;
      if (!more) return true;
    }
  }

 private:
  bool take(char c) {
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  void skip_space() {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) ++p_;
  }
  bool key() {
    skip_space();
    if (p_ == end_ || *p_ != '"' || !string()) return false;
    skip_space();
    return take(':');
  }

  // Behind a value: the brackets that close there. `more`: another value follows.
  bool close_values(bool& more) {
    for (;;) {
      if (open_.empty()) return true;
      skip_space();
      if (take(open_.back())) {
        open_.pop_back();
        continue;
      }
      more = true;
      return take(',') && (open_.back() != '}' || key());
    }
  }

  bool string() {
    ++p_;
    for (;;) {
      while (p_ != end_ && kPlain[static_cast<unsigned char>(*p_)]) ++p_;
      if (p_ == end_) return false;
      if (take('"')) return true;
      if (*p_ == '\\' ? !escape() : !character()) return false;
    }
  }

  bool escape() {
    ++p_;
    if (p_ == end_) return false;
    const char c = *p_++;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    std::uint32_t unit = 0;
    if (!hex(unit) || (unit >= 0xdc00 && unit < 0xe000)) return false;
    if (unit < 0xd800 || unit >= 0xe000) return true;
    return take('\\') && take('u') && hex(unit) && unit >= 0xdc00 && unit < 0xe000;
  }

  bool hex(std::uint32_t& unit) {
    unit = 0;
    for (int i = 0; i < 4; ++i) {
      if (p_ == end_) return false;
      const char c = *p_++;
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return false;
      unit = unit * 16 + static_cast<std::uint32_t>(digit);
    }
    return true;
  }

  // One character of two to four bytes, in its shortest form, and no surrogate.
  bool character() {
    const auto first = static_cast<unsigned char>(*p_);
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || end_ - p_ <= more) return false;
    std::uint32_t code = first & (0x3fU >> static_cast<unsigned>(more));
    for (int i = 1; i <= more; ++i) {
      const auto byte = static_cast<unsigned char>(p_[i]);
      if ((byte & 0xc0U) != 0x80) return false;
      code = code << 6U | (byte & 0x3fU);
    }
    p_ += more + 1;
    constexpr std::array<std::uint32_t, 4> kLeast{0, 0x80, 0x800, 0x10000};
    return code >= kLeast[static_cast<std::size_t>(more)] && code <= 0x10ffff &&
           (code < 0xd800 || code > 0xdfff);
  }

  bool scalar() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word)) continue;
      p_ += word.size();
      return true;
    }
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }
  bool digits() {
    const char* from = p_;
    while (p_ != end_ && *p_ >= '0' && *p_ <= '9') ++p_;
    return p_ != from;
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  std::string open_;  // the closing bracket of each list and object that is open
};

}  // namespace

bool is_strict_json(std::string_view text) {
  Strict strict(text);
  return strict.value() && strict.at_end();
}

std::size_t strict_json_size(std::string_view text) {
  Strict strict(text);
  return strict.value() ? strict.read() : 0;
}

}  // namespace culprit::ingest
