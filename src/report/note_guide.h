// NoteGuide: every note code that an answer can carry, what it says about the input, and what the
// reader of the answer can do about it. The list is part of the contract: codes are added, never
// renamed.
#pragma once

#include <span>
#include <string_view>

#include "store/notes.h"

namespace culprit::report {

struct NoteGuide {
  std::string_view code;     // "kernels-missing"
  std::string_view meaning;  // one sentence
  std::string_view remedy;   // one sentence; what to do, or why nothing need be done
  // The input is broken or something is missing from it: a warning, and no answer under --strict.
  bool damage = false;
};

std::span<const NoteGuide> note_guide();                  // in the order of the contract
const NoteGuide* find_note_guide(std::string_view code);  // null: no such code
// Of a damaging code, and grave enough to matter (severity warning or data-loss).
bool is_damage(const store::Note& note);

}  // namespace culprit::report
