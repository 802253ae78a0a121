// Where names stand in a trace and in what is said about it.
#include <algorithm>
#include <utility>
#include <vector>

#include "cli/public_files.h"
#include "cli/redact.h"

namespace culprit::cli {
namespace {

enum class Role : std::uint8_t { kOther, kFrame, kCallFrom };

std::vector<Role> roles_of(const store::Trace& trace) {
  std::vector<Role> roles(trace.strings.size(), Role::kOther);
  for (const store::StringId id : trace.frames.call_from)
    if (id.valid()) roles[id.index] = Role::kCallFrom;
  for (const store::StringId id : trace.frames.name)
    if (id.valid()) roles[id.index] = Role::kFrame;
  return roles;
}

}  // namespace

// Users and the files of libraries, before anything is rewritten; numbers are given in the order of
// names, for that of the texts in a trace depends on how it was read.
void Redactor::collect(const store::Trace& trace) {
  std::set<std::string> texts;
  const std::vector<Role> roles = roles_of(trace);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const std::string text(trace.strings[store::StringId(i)]);
    if (text.find('/') != std::string::npos || text.find('\\') != std::string::npos) learn(text);
    if (roles[i] == Role::kFrame) texts.insert(text);
    if (roles[i] != Role::kFrame) continue;
    std::string file = text.substr(0, std::min(text.find('('), text.size()));
    std::replace(file.begin(), file.end(), '\\', '/');
    const auto part = public_part(file);
    if (part && part->find("models/") == std::string_view::npos)
      public_files_.insert(file.substr(file.rfind('/') + 1));
  }
  for (const std::string& text : texts) frame(text);
}

void Redactor::redact(store::Trace& trace) {
  collect(trace);
  const std::vector<Role> roles = roles_of(trace);
  std::vector<std::pair<std::string, std::uint32_t>> in_order;
  for (std::uint32_t i = 0; i < roles.size(); ++i)
    in_order.emplace_back(trace.strings[store::StringId(i)], i);
  std::sort(in_order.begin(), in_order.end());
  std::vector<std::optional<std::string>> changed(roles.size());
  for (const auto& [text, i] : in_order) {
    std::string now = roles[i] == Role::kFrame      ? frame(text)
                      : roles[i] == Role::kCallFrom ? call_from(text)
                                                    : this->text(text);
    if (now != text) changed[i] = std::move(now);
  }
  trace.strings.rewrite([&](store::StringId id) { return changed[id.index]; });
  redact(trace.notes);
}

void Redactor::redact(store::Notes& notes) {
  store::Notes redacted;
  for (store::Note note : notes.all()) {
    note.where = text(note.where);
    note.message = text(note.message);
    redacted.add(std::move(note));
  }
  notes = std::move(redacted);
}

void Redactor::redact(report::Answer& answer, run::Run* run) {
  answer.path = trace_name(answer.path);
  for (report::InputFile& file : answer.inputs) file.path = trace_name(file.path);
  redact(answer.notes);
  if (answer.failure) {
    answer.failure->what = text(answer.failure->what);
    answer.failure->where = text(answer.failure->where);
    answer.failure->hint = text(answer.failure->hint);
  }
  if (run == nullptr) return;
  for (run::Lending& lending : run->lendings) lending.path = trace_name(lending.path);
}

void Redactor::redact(evidence::StepFloor& floor) {
  for (std::string& note : floor.floor.notes) note = text(note);
}

void Redactor::redact(compare::Side& side) {
  side.path = trace_name(side.path);
  redact(side.notes);
}

void Redactor::redact(compare::Comparisons& pairs) {
  for (compare::Ranked& ranked : pairs.all) {
    compare::Comparison& comparison = ranked.comparison;
    redact(comparison.before);
    redact(comparison.after);
    redact(comparison.notes);
    comparison.why_not = text(comparison.why_not);
    const bool by_rank = ranked.name.empty() || ranked.name.starts_with("rank ");
    if (!by_rank) ranked.name = comparison.before.path;
  }
}

}  // namespace culprit::cli
