// Archive: the bytes of a summary. One description per type (fields) serves both directions, so that what
// is written is what is read. Numbers are variable-length integers, doubles their 64 bits, lists their
// length and elements. A Reader never leaves its bytes: what is not there makes it fail, and stay failed.
// O(bytes); a list is never larger than the bytes that are left.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace culprit::fleet {

class Writer {
 public:
  static constexpr bool kReads = false;
  std::string take() { return std::move(out_); }
  bool ok() const { return true; }

  void number(std::uint64_t& value) {
    std::uint64_t rest = value;
    for (; rest >= 0x80; rest >>= 7) out_ += static_cast<char>(rest | 0x80);
    out_ += static_cast<char>(rest);
  }
  void text(std::string& value) {
    std::uint64_t size = value.size();
    number(size);
    out_ += value;
  }
  std::uint64_t length(std::uint64_t size) {
    number(size);
    return size;
  }

 private:
  std::string out_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view in) : in_(in) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && in_.empty(); }

  void number(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; ok_; shift += 7) {
      if (in_.empty() || shift > 63) return fail();
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return;
    }
  }
  void text(std::string& value) {
    const std::uint64_t size = length(0);
    value = in_.substr(0, size);
    in_.remove_prefix(value.size());
  }
  std::uint64_t length(std::uint64_t) {
    std::uint64_t size = 0;
    number(size);
    if (size > in_.size()) fail(), size = 0;
    return size;
  }

 private:
  void fail() {
    ok_ = false;
    in_ = {};
  }
  std::string_view in_;
  bool ok_ = true;
};

template <class Archive, class Value>
void item(Archive& archive, Value& value);

// Lists, optional values and texts of any type that has fields() or is a number.
template <class Archive, class Value>
void item(Archive& archive, std::vector<Value>& list) {
  const std::uint64_t size = archive.length(list.size());
  if constexpr (Archive::kReads) list.assign(size, Value{});
  for (Value& value : list) {
    item(archive, value);
    if (!archive.ok()) return;
  }
}

template <class Archive, class Value>
void item(Archive& archive, std::optional<Value>& value) {
  std::uint64_t there = value ? 1 : 0;
  archive.number(there);
  if constexpr (Archive::kReads) value = there != 0 ? std::optional<Value>(Value{}) : std::nullopt;
  if (value) item(archive, *value);
}

template <class Archive>
void item(Archive& archive, std::string& value) {
  archive.text(value);
}

template <class Archive, class Value>
void item(Archive& archive, Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    archive.number(bits);
    if constexpr (Archive::kReads) value = std::bit_cast<double>(bits);
  } else if constexpr (std::is_enum_v<Value> || std::is_integral_v<Value>) {
    // Signed numbers as 0, -1, 1, -2, ...: small ones of either sign are short.
    const auto wide = static_cast<std::int64_t>(value);
    std::uint64_t code =
        (static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63);
    archive.number(code);
    if constexpr (Archive::kReads)
      value = static_cast<Value>(static_cast<std::int64_t>(code >> 1) ^
                                 -static_cast<std::int64_t>(code & 1));
  } else {
    fields(archive, value);
  }
}

template <class Archive, class... Values>
void items(Archive& archive, Values&... values) {
  (item(archive, values), ...);
}

}  // namespace culprit::fleet
