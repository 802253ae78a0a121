// Event: one element of a Chrome trace's event array, taken apart into the raw texts of the fields
// that Culprit reads. Keys may come in any order. Nothing is copied: a RawEvent points into the
// buffer it was parsed from.
//
// Writers put the same keys in the same order into every event of a kind. KeyPredictor remembers,
// behind each key, the text up to the next value ('",\n    "tid": '), so that most keys cost one
// comparison instead of a scan. It changes no result.
//
// One parser serves clean and damaged text. Strict: a string ends at the next quote that no
// backslash escapes. Tolerant: it ends at a quote that JSON could go on after, so that unescaped
// quotes inside a name stay part of it. An event is parsed strictly first; only one that fails so
// is tried again tolerantly. Cost: one pass, 16 bytes a step inside strings.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ingest/scan.h"

namespace culprit::ingest {

enum class Field : std::uint8_t {
  kPhase,
  kCategory,
  kName,
  kPid,
  kTid,
  kTs,
  kDur,  // of the event
  kExternal,
  kCorrelation,
  kConnection,  // "connection_id": the same in traces of torch_npu
  kTaskType,    // "Task Type": of a task of the device there
  kDevice,
  kStream,
  kGraphNode,
  kKernel,
  kGrid,
  kBlock,  // of its args
  kBytes,
  kDims,
  kTypes,
  kCallFrom,
  kCollective,
  kCollectiveDtype,
  kInElements,
  kOutElements,
  kGroupSize,
  kGroup,
  kGroupRanks,
  kSequence,
  kIgnored,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::kIgnored);

struct RawEvent {
  std::array<std::string_view, kFieldCount>
      text;                     // strings without their quotes; valid where has()
  std::uint32_t seen = 0;       // bit per field
  std::uint32_t escaped = 0;    // bit per field: a backslash is in the string
  std::uint32_t spread = 0;     // bit per field: a list or object that may span lines
  std::uint32_t twice = 0;      // bit per field: its key came more than once
  std::uint32_t bad_words = 0;  // bare inf, NaN, N/A where numbers belong
  bool repaired = false;        // parsed tolerantly
  bool has(Field f) const { return (seen >> static_cast<unsigned>(f) & 1U) != 0; }
  bool is_escaped(Field f) const { return (escaped >> static_cast<unsigned>(f) & 1U) != 0; }
  bool is_spread(Field f) const { return (spread >> static_cast<unsigned>(f) & 1U) != 0; }
  std::string_view operator[](Field f) const { return text[static_cast<std::size_t>(f)]; }
  void clear() { seen = escaped = spread = twice = bad_words = 0, repaired = false; }
};

class KeyPredictor;

enum class Parsed : std::uint8_t {
  kOk,          // next: behind the closing brace
  kIncomplete,  // the text ended inside the event
  kMalformed,   // next: where it went wrong
};
struct EventEnd {
  Parsed status = Parsed::kOk;
  const char* next = nullptr;
};

// `p` at the opening brace; *end must be 0 with kPadding readable bytes behind it. Clears and fills
// `event`.
EventEnd parse_event(const char* p, const char* end, RawEvent& event, KeyPredictor& keys);

// Skips one JSON value of any kind at p, strictly.
EventEnd skip_value(const char* p, const char* end);

// The first position in [p, end) that looks like the start of an event in an array of events: '{'
// behind ',' or '[' (text before `p` from `begin` on is looked at), followed by a key that events
// begin with. `end` if there is none. A guess: text inside a string can look the same.
const char* find_event(const char* begin, const char* p, const char* end);
// Where text must be kept from in which find_event(begin, p, end) found none, since more text could
// make an event of its end: the comma or bracket in front of that. `end` if nothing must.
const char* find_cut_event(const char* begin, const char* p, const char* end);

}  // namespace culprit::ingest
