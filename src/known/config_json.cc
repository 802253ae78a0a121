#include "known/config_json.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

namespace culprit::known {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::int64_t kMostValue = 1'000'000'000;

}  // namespace

Result<Json> read_json_file(const std::string& path, std::string_view hint) {
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  while (file && text.size() <= kMostBytes) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    file.read(text.data() + before, static_cast<std::streamsize>(kChunk));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof() && text.size() <= kMostBytes) {
    return Error{Error::Code::kCannotRead, "cannot be read", path, std::string(hint)};
  }
  if (text.size() > kMostBytes) {
    return Error{Error::Code::kBadInput, "larger than 16 MiB, which no such file is", path,
                 std::string(hint)};
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    const auto* at = dynamic_cast<const Json::parse_error*>(&e);
    return Error{Error::Code::kBadInput, "is no valid JSON",
                 at == nullptr ? path : fmt::format("{}: byte {}", path, at->byte),
                 std::string(hint)};
  }
}

const Json* Fields::find(const char* key) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::fail(const char* key, std::string what, std::string hint) {
  if (error_) return;
  error_ =
      Error{Error::Code::kBadInput, fmt::format("\"{}\" {}", key, what), where_, std::move(hint)};
}

std::optional<std::int64_t> Fields::integer(std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    const bool in_range = value->is_number_unsigned()
                              ? value->get<std::uint64_t>() <= std::uint64_t{kMostValue}
                              : value->is_number_integer() && value->get<std::int64_t>() >= 0;
    if (in_range) return value->get<std::int64_t>();
    fail(
        key, value->is_number() ? "is outside 0 to 1,000,000,000" : "is not a whole number",
        "a size per layer that differs between layers cannot be read; correct or remove the field");
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    if (value->is_string()) return value->get<std::string>();
    fail(key, "is not a string", "correct or remove the field");
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<bool> Fields::flag(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, "is neither true nor false", "correct or remove the field");
  return std::nullopt;
}

}  // namespace culprit::known
