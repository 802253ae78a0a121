#include "store/notes.h"

#include <utility>

namespace culprit::store {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kDataLoss:
      return "data-loss";
    case Severity::kUnusable:
      return "unusable";
  }
  return "info";
}

void Notes::add(Note note) {
  for (Note& known : notes_) {
    if (known.code != note.code) continue;
    known.count += note.count;
    if (note.severity > known.severity) known.severity = note.severity;
    return;
  }
  notes_.push_back(std::move(note));
}

void Notes::merge(const Notes& other) {
  for (const Note& note : other.notes_) add(note);
}

const Note* Notes::find(std::string_view code) const {
  for (const Note& note : notes_) {
    if (note.code == code) return &note;
  }
  return nullptr;
}

}  // namespace culprit::store
