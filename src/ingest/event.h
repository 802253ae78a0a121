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
  kIgnored,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::kIgnored);

struct RawEvent {
  std::array<std::string_view, kFieldCount>
      text;                   // strings without their quotes; valid where has()
  std::uint32_t seen = 0;     // bit per field
  std::uint32_t escaped = 0;  // bit per field: a backslash is in the string
  bool duplicate_key = false;
  bool bad_word = false;  // a bare inf, NaN, N/A where a number belongs
  bool repaired = false;  // parsed tolerantly
  bool has(Field f) const { return (seen >> static_cast<unsigned>(f) & 1U) != 0; }
  bool is_escaped(Field f) const { return (escaped >> static_cast<unsigned>(f) & 1U) != 0; }
  std::string_view operator[](Field f) const { return text[static_cast<std::size_t>(f)]; }
  void clear() { seen = escaped = 0, duplicate_key = bad_word = repaired = false; }
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

}  // namespace culprit::ingest
