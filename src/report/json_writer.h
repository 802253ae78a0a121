// JsonWriter: JSON text, member by member, in the order of the calls. Strings become valid UTF-8
// whatever their bytes; a number that is not finite becomes null; equal calls give equal bytes.
// Blocks put each member on a line of its own, lines keep a whole value on one, tight ones without a
// blank. O(output).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <vector>

namespace culprit::report {

enum class JsonLayout : std::uint8_t { kBlock, kLine, kTight };

class JsonWriter {
 public:
  // Of texts longer than this many bytes the middle gives way.
  explicit JsonWriter(std::size_t longest_text = std::numeric_limits<std::size_t>::max())
      : longest_text_(longest_text) {}
  // `key` is empty for the document itself and for the elements of an array.
  void begin_object(std::string_view key, JsonLayout layout) { begin(key, '{', layout); }
  void begin_array(std::string_view key, JsonLayout layout) { begin(key, '[', layout); }
  void end();  // of the innermost object or array

  void null(std::string_view key);
  void boolean(std::string_view key, bool value);
  void integer(std::string_view key, std::optional<std::int64_t> value);  // none: null
  // At most `digits` significant digits (17 keep every bit); whole numbers are written without a
  // point.
  void number(std::string_view key, std::optional<double> value, int digits = 6);
  void text(std::string_view key, std::string_view value);
  void text_or_null(std::string_view key, std::string_view value);  // empty: null

  std::string take();  // the document, with a line break at the end

 private:
  struct Level {
    char close;
    JsonLayout layout;
    bool empty;
  };
  void begin(std::string_view key, char open, JsonLayout layout);
  void lead(std::string_view key);  // comma, line break, indent, key
  void quote(std::string_view value);
  void break_line();

  std::size_t longest_text_;
  std::string out_;
  std::vector<Level> levels_;
};

}  // namespace culprit::report
