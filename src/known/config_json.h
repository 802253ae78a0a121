// Small JSON documents that describe a deployment: model configs, quantisation files, server info.
// Nothing here trusts them: sizes are bounded, types checked, the first bad field becomes an error
// that names it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::known {

using Json = nlohmann::json;

// Reads and parses a file of at most 16 MiB. `hint` says what the user should have passed.
Result<Json> read_json_file(const std::string& path, std::string_view hint);

// Fields of one JSON object. An absent or null field is none; one of the wrong type, or a number
// outside [0, 10^9], sets the error and reads as none. Check error() once, at the end.
class Fields {
 public:
  // `object` outlives this; anything but an object has no fields. `where` is the file.
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // The first of `keys` that is there.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> keys);
  std::optional<std::string> text(std::initializer_list<const char*> keys);
  std::optional<bool> flag(const char* key);
  const Json* find(const char* key) const;
  const std::optional<Error>& error() const { return error_; }
  void fail(const char* key, std::string what, std::string hint);

 private:
  const Json& object_;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace culprit::known
