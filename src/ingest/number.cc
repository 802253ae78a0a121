#include "ingest/number.h"

#include <bit>
#include <cstring>
#include <limits>

namespace culprit::ingest {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 62;
constexpr int kMaxExponent = 40;  // beyond: no time and no id

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Decimal text taken apart: value = digits x 10^exponent. Digits beyond what 63 bits hold are an
// error unless they are fraction digits, which only round.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;
};

std::optional<Decimal> take_apart(std::string_view text) {
  Decimal d;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) d.negative = text[i++] == '-';
  bool any = false, after_point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    if (d.digits > (std::numeric_limits<std::uint64_t>::max() - 9) / 10) {
      if (!after_point) return std::nullopt;
      continue;  // a fraction longer than 19 digits: no figure of ours is that fine
    }
    d.digits = d.digits * 10 + static_cast<std::uint64_t>(c - '0');
    if (after_point) --d.exponent;
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool down = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) down = text[i++] == '-';
    int e = 0;
    const std::size_t from = i;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      e = e * 10 + (text[i] - '0');
      if (e > kMaxExponent) return std::nullopt;
    }
    if (i == from) return std::nullopt;
    d.exponent += down ? -e : e;
  }
  if (i != text.size()) return std::nullopt;
  return d;
}

// digits x 10^exponent as an integer; `rounded` tells whether a remainder was dropped.
std::optional<std::int64_t> to_integer(const Decimal& d, int shift, bool& rounded) {
  std::uint64_t v = d.digits;
  int exponent = d.exponent + shift;
  rounded = false;
  for (; exponent > 0; --exponent) {
    if (v > static_cast<std::uint64_t>(kLimit) / 10) return std::nullopt;
    v *= 10;
  }
  for (; exponent < -1; ++exponent) {
    rounded |= v % 10 != 0;
    v /= 10;
  }
  if (exponent == -1) {
    const std::uint64_t last = v % 10;
    rounded |= last != 0;
    v = v / 10 + (last >= 5 ? 1 : 0);
  }
  if (v > static_cast<std::uint64_t>(kLimit)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(v);
  return d.negative ? -value : value;
}

// The value of the eight digits at p; false if one of them is none. Pairs, then fours, then all eight, side by side in one
// register.
bool eight_digits(const char* p, std::uint64_t& value) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  v ^= 0x3030303030303030;
  const bool digits = (((v + 0x7676767676767676) | v) & 0x8080808080808080) == 0;
  v = v * 10 + (v >> 8);
  v = ((v & 0x000000ff000000ff) * 0x000f424000000064 +
       (v >> 16 & 0x000000ff000000ff) * 0x0000271000000001) >>
      32;
  value = v & 0xffffffff;
  return digits;
}

}  // namespace

std::optional<Nanos> parse_micros(std::string_view text) {
  // The form that nearly every event has: digits, a point, exactly three digits.
  const std::size_t n = text.size();
  if (n >= 5 && n <= 19 && text[n - 4] == '.') {
    std::uint64_t v = 0;
    bool plain = true;
    std::size_t i = 0;
    if (n >= 12) {
      plain = eight_digits(text.data(), v);
      i = 8;
    }
    const auto digit = [&](std::size_t at) {
      const auto d = static_cast<unsigned>(text[at] - '0');
      plain &= d <= 9;
      v = v * 10 + d;
    };
    for (; i < n - 4; ++i) digit(i);
    digit(n - 3), digit(n - 2), digit(n - 1);
    if (plain) return static_cast<Nanos>(v);
  }
  const auto d = take_apart(text);
  bool rounded = false;
  return d ? to_integer(*d, 3, rounded) : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (!text.empty() && text.size() <= 18) {
    std::int64_t v = 0;
    bool plain = true;
    for (const char c : text) {
      const auto digit = static_cast<unsigned>(c - '0');
      plain &= digit <= 9;
      v = v * 10 + static_cast<std::int64_t>(digit & 15);
    }
    if (plain) return v;
  }
  const auto d = take_apart(text);
  if (!d) return std::nullopt;
  bool rounded = false;
  const auto value = to_integer(*d, 0, rounded);
  return rounded ? std::nullopt : value;
}

}  // namespace culprit::ingest
