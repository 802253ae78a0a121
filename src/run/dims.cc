// The JSON text of "Input Dims" and "Input type": [[495552,1,576],[495552,1,576],[]] and
// ["c10::BFloat16","c10::Float8_e4m3fn","Scalar"]. Read by hand: no other JSON is met here.
#include <charconv>

#include "run/run.h"

namespace culprit::run {
namespace {

class Text {
 public:
  explicit Text(std::string_view text) : rest_(text) {}
  bool take(char c) {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at(char c) {
    if (!take(c)) return false;
    rest_ = {rest_.data() - 1, rest_.size() + 1};
    return true;
  }
  bool number(std::int64_t& value) {
    at('0');  // skips blanks
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool string(std::string& value) {
    if (!take('"')) return false;
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    return take('"');
  }
  bool ended() {
    at(' ');
    return rest_.empty();
  }

 private:
  std::string_view rest_;
};

// [..] of `element`s, comma between; `element` reads one and tells whether it could.
template <class Element>
bool read_list(Text& text, Element element) {
  if (!text.take('[')) return false;
  if (text.take(']')) return true;
  do {
    if (!element()) return false;
  } while (text.take(','));
  return text.take(']');
}

// A shape, or a list of shapes (TensorList), of which the first stands for the argument.
bool read_shape(Text& text, std::vector<std::int64_t>& shape) {
  bool first = true;
  return read_list(text, [&] {
    if (!text.at('[')) {
      std::int64_t size = 0;
      if (!text.number(size)) return false;
      shape.push_back(size);
      return true;
    }
    std::vector<std::int64_t> inner;
    if (!read_list(text, [&] {
          inner.push_back(0);
          return text.number(inner.back());
        }))
      return false;
    if (first) shape = inner;
    first = false;
    return true;
  });
}

}  // namespace

std::optional<std::vector<std::vector<std::int64_t>>> parse_dims(std::string_view json) {
  Text text(json);
  std::vector<std::vector<std::int64_t>> dims;
  const bool whole = read_list(text, [&] {
    dims.emplace_back();
    return read_shape(text, dims.back());
  });
  if (!whole || !text.ended()) return std::nullopt;
  return dims;
}

std::optional<std::vector<std::string>> parse_types(std::string_view json) {
  Text text(json);
  std::vector<std::string> types;
  const bool whole = read_list(text, [&] {
    types.emplace_back();
    return text.string(types.back());
  });
  if (!whole || !text.ended()) return std::nullopt;
  return types;
}

}  // namespace culprit::run
