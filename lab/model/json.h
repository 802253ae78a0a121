// Small JSON documents that describe a checkpoint: config.json, the index of its shards. Nothing is
// believed: types and ranges are checked, and the first field that is wrong becomes an error that
// names it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::lab {

using Json = nlohmann::json;

// where: the file that the text came from. An error names the byte.
Result<Json> parse_json(std::string_view text, const std::string& where);

// The fields of one object; null counts as absent. One of the wrong type or range sets the error and
// reads as the given default. Ask for error() once, at the end.
class Fields {
 public:
  Fields(const Json& object, std::string where);  // object outlives this

  std::int64_t integer(const char* key);  // must be there
  std::int64_t integer(const char* key, std::int64_t otherwise);
  double number(const char* key, double otherwise);
  bool flag(const char* key, bool otherwise);
  std::string text(const char* key, std::string_view otherwise);
  const Json* find(const char* key) const;

  void fail(const char* key, std::string_view what, std::string hint,
            Error::Code code = Error::Code::kBadInput);
  const std::optional<Error>& error() const { return error_; }

 private:
  const Json& object_;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace culprit::lab
