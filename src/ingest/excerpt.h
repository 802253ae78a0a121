// Excerpt: the text of chosen events, read a second time from the file that a Trace came from. Each
// is handed out as strict JSON: as it stands in the file where it is that, else written anew from the
// fields that are read (event.h), with the same meaning to a reader. Cost: of a plain file the blocks
// that hold the events, of a compressed one all text up to the last of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/ingest.h"

namespace culprit::ingest {

struct Excerpt {
  std::int64_t events = 0;
  std::int64_t rewritten = 0;  // of them: were no JSON as they stood
};

// `bytes`: where the events begin (store::Places), ascending. `take` gets each in that order.
// Errors: cannot read; kBadInput where the file is not what it was when its places were found.
Result<Excerpt> copy_events(const std::string& path, std::span<const std::int64_t> bytes,
                            const Options& options,
                            const std::function<void(std::string_view json)>& take);

}  // namespace culprit::ingest
