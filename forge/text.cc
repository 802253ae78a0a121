#include "forge/text.h"

#include <array>
#include <cstring>

namespace culprit::forge {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kNumberRoom = 48;  // more than any number takes

// "00".."99": two digits for one division.
constexpr std::array<char, 200> make_pairs() {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
constexpr std::array<char, 200> kPairs = make_pairs();

char* put_unsigned(char* out, std::uint64_t value) {
  std::array<char, 20> digits;
  std::size_t at = digits.size();
  while (value >= 100) {
    const std::size_t pair = value % 100;
    value /= 100;
    at -= 2;
    std::memcpy(&digits[at], &kPairs[2 * pair], 2);
  }
  if (value >= 10) {
    at -= 2;
    std::memcpy(&digits[at], &kPairs[2 * value], 2);
  } else {
    digits[--at] = static_cast<char>('0' + value);
  }
  std::memcpy(out, &digits[at], digits.size() - at);
  return out + (digits.size() - at);
}

char* put_fixed(char* out, std::uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return out + digits;
}

}  // namespace

TextBuffer::TextBuffer(Sink& sink) : sink_(sink), buffer_(kBufferBytes) {}

char* TextBuffer::room(std::size_t bytes) {
  if (used_ + bytes > buffer_.size()) {
    flush();
    if (bytes > buffer_.size()) buffer_.resize(bytes);
  }
  return buffer_.data() + used_;
}

bool TextBuffer::flush() {
  if (used_ != 0 && !failed_) failed_ = !sink_.write({buffer_.data(), used_});
  written_ += used_;
  used_ = 0;
  return !failed_;
}

void TextBuffer::text(std::string_view text) {
  std::memcpy(room(text.size()), text.data(), text.size());
  used_ += text.size();
}

void TextBuffer::integer(std::int64_t value) {
  char* out = room(kNumberRoom);
  char* const start = out;
  if (value < 0) *out++ = '-';
  const auto bits = static_cast<std::uint64_t>(value);
  out = put_unsigned(out, value < 0 ? 0 - bits : bits);
  used_ += static_cast<std::size_t>(out - start);
}

void TextBuffer::micros(Nanos time) {
  char* out = room(kNumberRoom);
  char* const start = out;
  const auto nanos = static_cast<std::uint64_t>(time < 0 ? 0 : time);  // the writer clamps too
  out = put_unsigned(out, nanos / 1000);
  *out++ = '.';
  out = put_fixed(out, nanos % 1000, 3);
  used_ += static_cast<std::size_t>(out - start);
}

void TextBuffer::ratio(std::int64_t above, std::int64_t below) {
  char* out = room(kNumberRoom);
  char* const start = out;
  const auto a = static_cast<std::uint64_t>(above);
  const auto b = static_cast<std::uint64_t>(below);
  out = put_unsigned(out, a / b);
  *out++ = '.';
  out = put_fixed(out, a % b * 1'000'000 / b, 6);
  used_ += static_cast<std::size_t>(out - start);
}

Stencil::Stencil(std::string_view pretty, Layout layout) {
  const std::string whole = layout == Layout::kPretty ? std::string(pretty) : one_line(pretty);
  for (const char c : whole) {
    if (c == '\n' || static_cast<unsigned char>(c) >= ' ') {
      text_ += c;
    } else {
      pieces_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<Hole>(c)});
    }
  }
  pieces_.push_back({static_cast<std::uint32_t>(text_.size()), Hole::kNone});
}

void Stencil::stamp(TextBuffer& out, const Values& values, Era era) const {
  const std::string_view text = text_;
  std::size_t at = 0;
  for (const Piece piece : pieces_) {
    out.text(text.substr(at, piece.end - at));
    at = piece.end;
    switch (piece.hole) {
      case Hole::kNone:
        break;
      case Hole::kTime:
        era == Era::kAbsoluteMicros ? out.integer(values.time / 1000) : out.micros(values.time);
        break;
      case Hole::kDuration:
        // Both ends are cut to whole microseconds, so that nesting survives.
        if (era == Era::kAbsoluteMicros) {
          out.integer((values.time + values.duration) / 1000 - values.time / 1000);
        } else {
          out.micros(values.duration);
        }
        break;
      case Hole::kExternal:
        out.integer(values.external);
        break;
      case Hole::kCorrelation:
        out.integer(values.correlation);
        break;
      case Hole::kEvent:
        out.integer(values.event);
        break;
      case Hole::kPython:
        out.integer(values.python);
        break;
      case Hole::kParent:
        values.parent < 0 ? out.text("null") : out.integer(values.parent);
        break;
      case Hole::kNumber:
        out.integer(values.number);
        break;
      case Hole::kBandwidth:
        out.ratio(values.bytes, values.duration > 0 ? values.duration : 1);
        break;
    }
  }
}

std::string one_line(std::string_view pretty) {
  std::string line;
  for (std::size_t i = 0; i < pretty.size(); ++i) {
    const char c = pretty[i];
    const bool last = i + 1 == pretty.size();
    if (c == '\n' && !last) {
      while (i + 1 < pretty.size() && pretty[i + 1] == ' ') ++i;
      if (!line.empty() && line.back() == ',') line += ' ';
    } else if (c == ' ' && (line.empty() || line.back() == ' ' || line.back() == '{')) {
      continue;
    } else {
      line += c;
    }
  }
  return line;
}

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace culprit::forge
