// JSON written piece by piece into a trace file through a small buffer. Strings are made strict
// JSON whatever bytes they hold: what is no UTF-8 becomes U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/clock.h"
#include "profile/trace_file.h"

namespace culprit::profile::detail {

class JsonText {
 public:
  explicit JsonText(TraceFile& file) : file_(file) {}
  ~JsonText() { flush(); }
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  JsonText& raw(std::string_view text);
  JsonText& quoted(std::string_view text);
  JsonText& number(std::int64_t value);
  JsonText& micros(Nanos ns);  // 1234567 -> 1234.567

 private:
  void escape(unsigned char c);
  void flush();
  TraceFile& file_;
  std::string buffer_;
};

}  // namespace culprit::profile::detail
