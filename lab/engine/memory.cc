#include "lab/engine/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace culprit::lab {

std::int64_t machine_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? std::int64_t{pages} * page : 0;
}

Result<Arena> Arena::make(std::int64_t bytes, const std::string& what) {
  const std::int64_t most = machine_bytes();
  // An allocation that succeeds now and is killed when it is touched would tell nobody anything.
  if (bytes < 0 || (most > 0 && bytes > most)) {
    return Error{.code = Error::Code::kUnusable,
                 .what = fmt::format("{} takes {}, this machine has {}", what, text::bytes(bytes),
                                     text::bytes(most)),
                 .where = what,
                 .hint = "a smaller pool, batch, context or slice of the model takes less",
                 .note_code = {}};
  }
  Arena arena;
  TRY(arena.pages_, Pages::reserve(std::max<std::int64_t>(bytes, 1)));
  std::memset(arena.data(), 0, static_cast<std::size_t>(bytes));
  return arena;
}

}  // namespace culprit::lab
