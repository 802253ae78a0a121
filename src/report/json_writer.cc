#include "report/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace culprit::report {

void JsonWriter::break_line() {
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

void JsonWriter::lead(std::string_view key) {
  if (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.empty) out_ += level.layout == JsonLayout::kLine ? ", " : ",";
    level.empty = false;
    if (level.layout == JsonLayout::kBlock) break_line();
  }
  if (key.empty()) return;
  quote(key);
  out_ += ": ";
}

void JsonWriter::begin(std::string_view key, char open, JsonLayout layout) {
  lead(key);
  const bool inside = !levels_.empty() && levels_.back().layout != JsonLayout::kBlock;
  out_ += open;
  levels_.push_back(
      {open == '{' ? '}' : ']', inside ? levels_.back().layout : layout, /*empty=*/true});
}

void JsonWriter::end() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.layout == JsonLayout::kBlock && !level.empty) break_line();
  out_ += level.close;
}

void JsonWriter::null(std::string_view key) {
  lead(key);
  out_ += "null";
}

void JsonWriter::boolean(std::string_view key, bool value) {
  lead(key);
  out_ += value ? "true" : "false";
}

void JsonWriter::integer(std::string_view key, std::optional<std::int64_t> value) {
  if (!value) return null(key);
  lead(key);
  fmt::format_to(std::back_inserter(out_), "{}", *value);
}

void JsonWriter::number(std::string_view key, std::optional<double> value, int digits) {
  if (!value || !std::isfinite(*value)) return null(key);
  constexpr double kExact = 9007199254740992.0;  // 2^53: above it a double is no count any more
  lead(key);
  if (std::fabs(*value) < kExact && std::trunc(*value) == *value) {
    out_ += fmt::format("{}", static_cast<std::int64_t>(*value));
  } else {
    out_ += fmt::format("{:.{}g}", *value, digits);
  }
}

void JsonWriter::text(std::string_view key, std::string_view value) {
  lead(key);
  if (value.size() <= longest_text_) return quote(value);
  // Both ends tell more than one: a path's file, a template's function.
  const std::size_t half = longest_text_ / 2;
  quote(fmt::format("{} … {}", value.substr(0, half), value.substr(value.size() - half)));
}

void JsonWriter::text_or_null(std::string_view key, std::string_view value) {
  if (value.empty()) return null(key);
  text(key, value);
}

void JsonWriter::quote(std::string_view value) {
  out_ += '"';
  for (const char c : text::valid_utf8(value)) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

std::string JsonWriter::take() {
  out_ += '\n';
  return std::exchange(out_, {});
}

}  // namespace culprit::report
