#include "lab/model/json.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace culprit::lab {

Result<Json> parse_json(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    const auto* const at = dynamic_cast<const Json::parse_error*>(&e);
    return Error{Error::Code::kBadInput, "is no valid JSON",
                 at == nullptr ? where : fmt::format("{}: byte {}", where, at->byte),
                 "the file is damaged or was not written completely; fetch it again"};
  }
}

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    error_ = Error{Error::Code::kBadInput, "is JSON, but no object", where_,
                   "pass the config.json that lies beside the weights"};
}

const Json* Fields::find(const char* key) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::fail(const char* key, std::string_view what, std::string hint, Error::Code code) {
  if (!error_) error_ = Error{code, fmt::format("\"{}\" {}", key, what), where_, std::move(hint)};
}

std::int64_t Fields::integer(const char* key) {
  if (find(key) == nullptr)
    fail(key, "is missing", "the lab needs it for a model of this architecture");
  return integer(key, 0);
}

std::int64_t Fields::integer(const char* key, std::int64_t otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const bool fits = value->is_number_unsigned()
                        ? value->get<std::uint64_t>() <= std::uint64_t{kMost}
                        : value->is_number_integer() && value->get<std::int64_t>() >= 0;
  if (fits) return value->get<std::int64_t>();
  fail(key, "is not a whole number within 0 to 2^40", "correct the field");
  return otherwise;
}

double Fields::number(const char* key, double otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  fail(key, "is not a number", "correct the field");
  return otherwise;
}

bool Fields::flag(const char* key, bool otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, "is neither true nor false", "correct the field");
  return otherwise;
}

std::string Fields::text(const char* key, std::string_view otherwise) {
  const Json* const value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) return value->get<std::string>();
  fail(key, "is not a string", "correct the field");
  return std::string(otherwise);
}

}  // namespace culprit::lab
