// Names as text: UTF-8 decoded strictly, and the width of what a terminal would show.
#include "base/text.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

namespace culprit::text {
namespace {

constexpr char32_t kBroken = 0xFFFD;

struct Range {
  char32_t first, last;
};

// What must not reach a terminal: controls, bidirectional marks, invisible format characters.
constexpr Range kHidden[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},
                             {0x61C, 0x61C},   {0x180E, 0x180E},  {0x200B, 0x200F},
                             {0x2028, 0x202E}, {0x2060, 0x206F},  {0xFEFF, 0xFEFF},
                             {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

// Combining marks and variation selectors: they share the column of the character before.
constexpr Range kZeroWidth[] = {
    {0x300, 0x36F},    {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
    {0x6D6, 0x6DC},    {0x900, 0x902},   {0x93C, 0x93C},   {0x941, 0x948},   {0xE31, 0xE31},
    {0xE34, 0xE3A},    {0xE47, 0xE4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x20D0, 0x20F0},  {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    {0xE0100, 0xE01EF}};

// East Asian Wide and Fullwidth, and emoji shown as pictures (Unicode Standard Annex 11).
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1B000, 0x1B2FF},
    {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A},
    {0x1F200, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393},
    {0x1F3A0, 0x1F3CA}, {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4},
    {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D},
    {0x1F54B, 0x1F54E}, {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596},
    {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC},
    {0x1F6D0, 0x1F6D2}, {0x1F6D5, 0x1F6D7}, {0x1F6DC, 0x1F6DF}, {0x1F6EB, 0x1F6EC},
    {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7EB}, {0x1F7F0, 0x1F7F0}, {0x1F90C, 0x1F93A},
    {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x2FFFD},
    {0x30000, 0x3FFFD}};

bool in(std::span<const Range> ranges, char32_t c) {
  const auto at =
      std::partition_point(ranges.begin(), ranges.end(), [c](Range r) { return r.last < c; });
  return at != ranges.end() && at->first <= c;
}

int width_of(char32_t c) {
  if (c < 0x300) return in(kHidden, c) ? 0 : 1;
  if (in(kZeroWidth, c)) return 0;
  return in(kWide, c) ? 2 : 1;
}

// The character at the front of `rest` and its length; kBroken and the length of the longest wrong
// beginning (at least 1) where the bytes are no UTF-8: overlong forms, surrogates, above 10FFFF.
std::pair<char32_t, std::size_t> decode(std::string_view rest) {
  const auto byte = [rest](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {kBroken, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t c = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= rest.size()) return {kBroken, i};
    const bool fits = i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0u) == 0x80u;
    if (!fits) return {kBroken, i};
    c = c << 6 | (byte(i) & 0x3Fu);
  }
  return {c, length};
}

template <class F>
void for_each_character(std::string_view text, F&& f) {
  while (!text.empty()) {
    const auto [c, length] = decode(text);
    f(c, text.substr(0, length));
    text.remove_prefix(length);
  }
}

constexpr std::string_view kBrokenUtf8 = "\xEF\xBF\xBD";

// The longest beginning of `text` that takes at most `columns`.
std::string_view prefix_within(std::string_view text, int columns) {
  std::size_t size = 0;
  int used = 0;
  while (size < text.size()) {
    const auto [c, length] = decode(text.substr(size));
    used += width_of(c);
    if (used > columns) break;
    size += length;
  }
  return text.substr(0, size);
}

// The longest end of `text` that takes at most `columns` and does not begin inside a character.
std::string_view suffix_within(std::string_view text, int columns) {
  int left_over = display_width(text);
  while (!text.empty() && left_over > columns) {
    const auto [c, length] = decode(text);
    left_over -= width_of(c);
    text.remove_prefix(length);
  }
  return text;
}

// Our own signs, and what typesetting programs put in the place of ASCII ones.
struct Ascii {
  char32_t sign;
  std::string_view text;
};
constexpr Ascii kAscii[] = {{0xA0, " "},   {0xB1, "+-"},    {0xB5, "u"},    {0xB7, "-"},
                            {0xD7, "x"},   {0x3BC, "u"},    {0x2013, "-"},  {0x2014, "-"},
                            {0x2018, "'"}, {0x2019, "'"},   {0x201C, "\""}, {0x201D, "\""},
                            {0x2022, "-"}, {0x2026, "..."}, {0x202F, " "},  {0x2192, "->"},
                            {0x2212, "-"}, {0x2264, "<="},  {0x2265, ">="}};

std::string_view ascii_of(char32_t c) {
  for (const Ascii& known : kAscii) {
    if (known.sign == c) return known.text;
  }
  return "?";
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for_each_character(bytes, [&out](char32_t c, std::string_view text) {
    out += c == kBroken ? kBrokenUtf8 : text;
  });
  return out;
}

std::string clean(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for_each_character(bytes, [&out](char32_t c, std::string_view text) {
    if (c == '\t' || c == '\n' || c == '\r') {
      out += ' ';
    } else if (!in(kHidden, c)) {
      out += c == kBroken ? kBrokenUtf8 : text;
    }
  });
  return out;
}

std::string ascii(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  for_each_character(
      utf8, [&out](char32_t c, std::string_view text) { out += c < 0x80 ? text : ascii_of(c); });
  return out;
}

int display_width(std::string_view utf8) {
  int width = 0;
  for_each_character(utf8, [&width](char32_t c, std::string_view) { width += width_of(c); });
  return width;
}

std::string pad_right(std::string_view utf8, int columns) {
  const int missing = std::max(0, columns - display_width(utf8));
  return std::string(utf8) + std::string(static_cast<std::size_t>(missing), ' ');
}

std::string pad_left(std::string_view utf8, int columns) {
  const int missing = std::max(0, columns - display_width(utf8));
  return std::string(static_cast<std::size_t>(missing), ' ') + std::string(utf8);
}

std::string shorten_middle(std::string_view utf8, int columns, bool unicode) {
  if (display_width(utf8) <= columns) return std::string(utf8);
  const std::string_view mark = unicode ? "…" : "...";
  const int room = columns - display_width(mark);
  if (room < 2) return std::string(prefix_within(utf8, std::max(0, columns)));
  const std::string_view front = prefix_within(utf8, (room + 1) / 2);
  const std::string_view back = suffix_within(utf8, room - display_width(front));
  return std::string(front) + std::string(mark) + std::string(back);
}

std::vector<std::string> wrap(std::string_view utf8, int columns) {
  std::vector<std::string> lines;
  std::string line;
  const auto finish_line = [&] { lines.push_back(std::exchange(line, {})); };
  while (!utf8.empty()) {
    const std::size_t end = std::min(utf8.find(' '), utf8.size());
    std::string_view word = utf8.substr(0, end);
    utf8.remove_prefix(std::min(end + 1, utf8.size()));
    if (word.empty()) continue;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > columns) finish_line();
    if (!line.empty()) line += ' ';
    while (display_width(word) > columns) {
      std::string_view piece = prefix_within(word, columns);
      if (piece.empty()) piece = word.substr(0, decode(word).second);
      lines.emplace_back(piece);
      word.remove_prefix(piece.size());
    }
    line += word;
  }
  if (!line.empty()) finish_line();
  return lines;
}

}  // namespace culprit::text
