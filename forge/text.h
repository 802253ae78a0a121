// Text of a trace: a sink, a buffer before it, and stencils: an event's text with holes for numbers.
// Invariant: an event's constant text is formatted once per run, never per event.
// Units: nanoseconds in; microseconds with three decimals out, or whole ones (Era::kAbsoluteMicros).
// Cost: a stamped event is a few memcpy and one integer conversion per hole, about 2 GB/s.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "forge/run.h"

namespace culprit::forge {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual bool write(std::string_view text) = 0;  // false: the destination takes no more
};

class FileSink final : public Sink {
 public:
  explicit FileSink(std::FILE* file) : file_(file) {}
  bool write(std::string_view text) override {
    return std::fwrite(text.data(), 1, text.size(), file_) == text.size() &&
           std::fflush(file_) == 0;
  }

 private:
  std::FILE* file_;
};

class StringSink final : public Sink {
 public:
  bool write(std::string_view text) override {
    text_ += text;
    return true;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class CountingSink final : public Sink {
 public:
  bool write(std::string_view) override { return true; }
};

class TextBuffer {
 public:
  explicit TextBuffer(Sink& sink);
  void text(std::string_view text);
  void integer(std::int64_t value);
  void micros(Nanos time);                             // 1234567 -> 1234.567
  void ratio(std::int64_t above, std::int64_t below);  // six decimals
  bool flush();                                        // false: a write has failed
  std::uint64_t bytes() const { return written_ + used_; }

 private:
  char* room(std::size_t bytes);
  Sink& sink_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::uint64_t written_ = 0;
  bool failed_ = false;
};

enum class Layout { kPretty, kLines, kArray };

// Forms of time in Kineto's history: whole microseconds since 1970 (until 2024-03), the same with
// nanoseconds (2024-04), relative to baseTimeNanoseconds (since 2024-05).
enum class Era { kAbsoluteMicros, kAbsoluteNanos, kRelative };

// What a stencil leaves open. The values are the bytes that stand for the hole in its text.
enum class Hole : char {
  kNone = 0,
  kTime = 1,
  kDuration = 2,
  kExternal = 3,
  kCorrelation = 4,
  kEvent = 5,
  kPython = 6,
  kParent = 7,  // "null" when negative
  kNumber = 8,  // layer or step
  kBandwidth = 14,
};
constexpr std::string_view hole_text(const char (&byte)[2]) { return {byte, 1}; }

struct Values {
  Nanos time = 0;
  Nanos duration = 0;
  std::int64_t external = 0;
  std::int64_t correlation = 0;
  std::int64_t event = 0;
  std::int64_t python = 0;
  std::int64_t parent = -1;
  std::int64_t number = 0;
  std::int64_t bytes = 0;
};

class Stencil {
 public:
  // `pretty` is the event as Kineto prints it; other layouts are made from it.
  Stencil(std::string_view pretty, Layout layout);
  void stamp(TextBuffer& out, const Values& values, Era era) const;

 private:
  struct Piece {
    std::uint32_t end = 0;  // of the text before the hole
    Hole hole = Hole::kNone;
  };
  std::string text_;
  std::vector<Piece> pieces_;
};

// `pretty` without line breaks and with single spaces.
std::string one_line(std::string_view pretty);

// `text` as the inside of a JSON string.
std::string json_escaped(std::string_view text);

}  // namespace culprit::forge
