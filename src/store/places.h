// Places: where each row of a Trace stands in the text of its file, and what else of the file is no
// row. Kept only where asked for (ingest::Options::places): 8 bytes a row; else empty. Bytes count in
// the decompressed text, from an event's opening brace. Rows of one table and `others` are in the
// order of the file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"

namespace culprit::store {

enum class OtherKind : std::uint8_t {
  kMetadata,  // names of processes and threads
  kFlow,      // one end of an arrow from a launch to its kernel
  kTimed,     // counters, instants and events of categories that are not read
};

struct OtherEvent {
  std::int64_t byte = 0;
  Nanos at = 0;                 // when; 0 of metadata
  Id<struct ThreadTag> thread;  // of flows alone
  OtherKind kind = OtherKind::kTimed;
};

struct Places {
  std::vector<std::int64_t> device, calls, ops, frames, marks, syncs;  // by row of these tables
  std::vector<OtherEvent> others;
  // What stands around the events: top-level keys and their values as written, in order of the keys.
  std::vector<std::pair<std::string, std::string>> head;
};

}  // namespace culprit::store
