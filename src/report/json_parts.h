// What the --json documents have in common: how they begin, and members that mean the same in each.
// Definitions of the same names in docs/schema/*.schema.json are these, and tests hold them equal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/evidence.h"
#include "report/json_writer.h"
#include "verdict/verdict.h"

namespace culprit::report {

// Opens the document; `kind`: what it is, empty: the answer about a trace.
void begin_document(JsonWriter& w, std::string_view kind = {});

// Zero is how layers below say "not known".
template <class T>
std::optional<T> known_or_null(T value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

template <class T>
void integers(JsonWriter& w, std::string_view key, const T& values) {
  w.begin_array(key, JsonLayout::kLine);
  for (const auto value : values) w.integer({}, value);
  w.end();
}
void texts(JsonWriter& w, std::string_view key, const std::vector<std::string>& values);

void write_note(JsonWriter& w, const store::Note& note);
void write_source(JsonWriter& w, std::string_view key, const run::Source& source);
void write_dim3(JsonWriter& w, std::string_view key, const store::Dim3& dim);  // zeros: null
void write_tensor(JsonWriter& w, const std::optional<verdict::TensorMatch>& tensor);
void write_ruled_out(JsonWriter& w, const std::vector<verdict::RuledOut>& all);
void write_facts(JsonWriter& w, std::span<const evidence::Fact> facts);

}  // namespace culprit::report
