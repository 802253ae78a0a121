#include "ingest/text.h"

#include <cstdint>

namespace culprit::ingest {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Four hex digits at body[at..]; -1 if there are not.
std::int32_t hex4(std::string_view body, std::size_t at) {
  if (at + 4 > body.size()) return -1;
  std::int32_t v = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const int d = hex_digit(body[i]);
    if (d < 0) return -1;
    v = v * 16 + d;
  }
  return v;
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)),
        put(0x80 | (c & 0x3f));
  }
}

// One \uXXXX (or a surrogate pair) at body[at], behind the backslash and the u; returns the
// characters taken, 0 if invalid.
std::size_t unicode_escape(std::string_view body, std::size_t at, std::string& out) {
  const std::int32_t high = hex4(body, at);
  if (high < 0) return 0;
  const auto code = static_cast<std::uint32_t>(high);
  if (code >= 0xd800 && code < 0xdc00 && at + 10 <= body.size() && body[at + 4] == '\\' &&
      body[at + 5] == 'u') {
    const std::int32_t low = hex4(body, at + 6);
    if (low >= 0xdc00 && low < 0xe000) {
      append_utf8(out,
                  0x10000 + ((code - 0xd800) << 10) + (static_cast<std::uint32_t>(low) - 0xdc00));
      return 10;
    }
  }
  if (code >= 0xd800 && code < 0xe000) {
    out.push_back('\xff');  // half a pair is no character
  } else {
    append_utf8(out, code);
  }
  return 4;
}

// Length of the valid UTF-8 character at text[at]; 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned c = byte(at);
  if (c < 0x80) return 1;
  const std::size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if (c < 0xc2 || c > 0xf4 || at + n > text.size()) return 0;
  for (std::size_t i = at + 1; i < at + n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
      (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f)) {
    return 0;  // overlong, surrogate or beyond U+10FFFF
  }
  return n;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The part in front of the line of a Python file: "torch/nn/functional.py(9): relu", "functional.py:9". Empty: no such text.
std::string_view python_path(std::string_view body) {
  const std::size_t stop = body.find(".py");
  if (stop == std::string_view::npos || stop + 4 >= body.size()) return {};
  const char mark = body[stop + 3], digit = body[stop + 4];
  if ((mark != '(' && mark != ':') || digit < '0' || digit > '9') return {};
  return body.substr(0, stop);
}

bool is_unescaped_path(std::string_view body) {
  if (body.size() > 3 && is_letter(body[0]) && body[1] == ':' && body[2] == '\\' &&
      body[3] != '\\' && body[3] != '"') {
    return true;
  }
  const std::string_view path = python_path(body);
  if (path.find_first_of(" /\"") != std::string_view::npos) return false;
  for (std::size_t at = 0; (at = path.find('\\', at)) != std::string_view::npos; at += 2) {
    if (at + 1 < path.size() &&
        std::string_view("bfnrt").find(path[at + 1]) != std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

bool unescape(std::string_view body, std::string& out) {
  out.clear();
  if (is_unescaped_path(body)) {
    out.assign(body);
    return false;
  }
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out.push_back(body[i]);
      continue;
    }
    const char c = ++i < body.size() ? body[i] : '\0';
    std::size_t taken = 0;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out.push_back(c);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u':
        taken = unicode_escape(body, i + 1, out);
        if (taken > 0) break;
        [[fallthrough]];
      default:
        out.assign(body);
        return false;
    }
    i += taken;
  }
  return true;
}

bool is_clean(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0 || is_control(text[i])) return false;
    i += n;
  }
  return true;
}

std::string cleaned(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0 || is_control(text[i])) {
      out += "\xef\xbf\xbd";
      ++i;
    } else {
      out.append(text, i, n);
      i += n;
    }
  }
  return out;
}

}  // namespace culprit::ingest
