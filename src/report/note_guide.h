// NoteGuide: every note code that an answer can carry, what it says about the input, and what the
// reader of the answer can do about it. The list is part of the contract: codes are added, never
// renamed.
#pragma once

#include <span>
#include <string_view>

namespace culprit::report {

struct NoteGuide {
  std::string_view code;     // "kernels-missing"
  std::string_view meaning;  // one sentence
  std::string_view remedy;   // one sentence; what to do, or why nothing need be done
};

std::span<const NoteGuide> note_guide();                  // in the order of the contract
const NoteGuide* find_note_guide(std::string_view code);  // null: no such code

}  // namespace culprit::report
