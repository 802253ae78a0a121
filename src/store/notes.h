// Note: one kind of fault or limit found in the input, counted and located. Codes are those of the
// JSON contract. Notes are added while reading and while building the run; equal codes merge:
// counts add, the first place stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::store {

enum class Severity : std::uint8_t {
  kInfo,      // good to know; no figure is affected
  kWarning,   // some figures are less certain
  kDataLoss,  // something of the run is missing from the trace
  kUnusable,  // no verdict can be given
};
std::string_view severity_name(Severity);  // "info", "warning", "data-loss", "unusable"

struct Note {
  std::string code;  // "bad-number"
  Severity severity = Severity::kInfo;
  std::int64_t count = 1;
  std::optional<std::int64_t> byte;   // first place, offset in the decompressed input
  std::optional<std::int64_t> event;  // first place, index of the event, from 0
  std::string where;                  // "steps 0-2", "stream 7"; empty if it has no place
  std::string message;                // one sentence: what it is and what it does to the answer
};

class Notes {
 public:
  void add(Note note);
  void merge(const Notes& other);
  const std::vector<Note>& all() const { return notes_; }  // in order of first appearance
  const Note* find(std::string_view code) const;
  bool has(std::string_view code) const { return find(code) != nullptr; }

 private:
  std::vector<Note> notes_;
};

}  // namespace culprit::store
