// Document: what stands around the event array of a Chrome trace: the top-level keys in front of it
// and behind it, in any order, and what a file is that has no such array.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/trace.h"

namespace culprit::ingest {

class Document {
 public:
  enum class Head : std::uint8_t {
    kEvents,    // the event array begins: see events_at()
    kNeedMore,  // the text ends before it could be told
    kNone,      // a whole JSON document without an event array
    kNotJson,   // nor does an array's beginning follow the damage
  };
  // `text` from the document's first byte. Padded as for parse_event.
  Head read_head(std::string_view text);
  std::size_t events_at() const { return events_at_; }  // behind the array's opening bracket
  // Text in front of the array that is no JSON was skipped from here on.
  std::optional<std::size_t> damaged_at() const { return damaged_at_; }

  enum class Tail : std::uint8_t {
    kComplete,
    kTruncated,
    kSecondArray,     // another "traceEvents" in this document
    kSecondDocument,  // another document behind this one
    kTrailing,        // something else behind it
  };
  // `text` from behind the array's closing bracket. tail_end(): where the document, or what of it was read, ends.
  Tail read_tail(std::string_view text);
  std::size_t tail_end() const { return tail_end_; }

  // Moves what the keys say into `info`; notes values that cannot be understood.
  void describe(store::TraceInfo& info, store::Notes& notes) const;
  bool has(std::string_view key) const { return values_.count(key) > 0; }
  // Fills Places::head.
  void keep(store::Places& places) const { places.head.assign(values_.begin(), values_.end()); }

 private:
  const char* read_keys(const char* p, const char* end, bool& complete);
  const char* find_events(const char* p, const char* end) const;
  bool object_ = false;
  std::size_t events_at_ = 0, tail_end_ = 0;
  const char* key_ = nullptr;  // the last one that read_keys began with
  std::optional<std::size_t> damaged_at_;
  std::map<std::string, std::string, std::less<>> values_;  // raw JSON text by top-level key
};

// Why a file named `path` whose text begins with `head` (not empty; padded as for parse_event) is
// refused: the name of its format and the remedy. Empty `what`: it looks like JSON.
Error refuse_by_content(const std::string& path, std::string_view head);

}  // namespace culprit::ingest
