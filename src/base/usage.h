// Usage: the error of who asked for what cannot be done. It names no place: the command line is short.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace culprit {

inline Error usage(std::string what, std::string hint = {}) {
  return {.code = Error::Code::kUsage,
          .what = std::move(what),
          .where = {},
          .hint = std::move(hint),
          .note_code = {}};
}

}  // namespace culprit
