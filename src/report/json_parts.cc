#include "report/json_parts.h"

#include "base/version.h"

namespace culprit::report {
namespace {

constexpr auto kBlock = JsonLayout::kBlock;
constexpr auto kLine = JsonLayout::kLine;
constexpr int kSchemaVersion = 1;
constexpr int kFactDigits = 15;  // what a double holds of a decimal figure

}  // namespace

void begin_document(JsonWriter& w, std::string_view kind) {
  w.begin_object({}, kBlock);
  w.integer("schema_version", kSchemaVersion);
  if (!kind.empty()) w.text("kind", kind);
  w.begin_object("tool", kLine);
  w.text("name", "culprit");
  w.text("version", version());
  w.end();
}

void texts(JsonWriter& w, std::string_view key, const std::vector<std::string>& values) {
  w.begin_array(key, kLine);
  for (const std::string& value : values) w.text({}, value);
  w.end();
}

void write_note(JsonWriter& w, const store::Note& note) {
  w.begin_object({}, kLine);
  w.text("code", note.code);
  w.text("severity", store::severity_name(note.severity));
  w.integer("count", note.count);
  w.text_or_null("where", note.where);
  w.integer("byte", note.byte);
  w.integer("event", note.event);
  w.text("message", note.message);
  w.end();
}

void write_source(JsonWriter& w, std::string_view key, const run::Source& source) {
  w.begin_object(key, kLine);
  w.text("file", source.file);
  w.integer("line", source.line);
  w.text_or_null("function", source.function);
  w.boolean("exact", source.exact);
  w.end();
}

void write_dim3(JsonWriter& w, std::string_view key, const store::Dim3& dim) {
  if (dim == store::Dim3{}) return w.null(key);
  integers(w, key, dim);
}

void write_tensor(JsonWriter& w, const std::optional<verdict::TensorMatch>& tensor) {
  if (!tensor) return w.null("tensor");
  w.begin_object("tensor", kLine);
  w.text("name", tensor->name);
  if (tensor->shape.empty()) {
    w.null("shape");
  } else {
    integers(w, "shape", tensor->shape);
  }
  w.text_or_null("dtype", tensor->dtype);
  w.integer("elements", known_or_null(tensor->elements));
  w.text_or_null("match", tensor->match);
  w.end();
}

void write_ruled_out(JsonWriter& w, const std::vector<verdict::RuledOut>& all) {
  w.begin_array("ruled_out", kBlock);
  for (const verdict::RuledOut& ruled : all) {
    w.begin_object({}, kLine);
    w.text("hypothesis", ruled.hypothesis);
    w.text("claim", ruled.claim);
    w.text("because", ruled.because);
    texts(w, "facts", ruled.facts);
    w.end();
  }
  w.end();
}

void write_facts(JsonWriter& w, std::span<const evidence::Fact> facts) {
  w.begin_array("facts", kBlock);
  for (const evidence::Fact& fact : facts) {
    w.begin_object({}, kLine);
    w.text("id", fact.id);
    w.text("name", fact.name);
    w.number("value", fact.value, kFactDigits);
    w.text("unit", fact.unit);
    w.text("how", fact.how);
    w.text_or_null("query", fact.query);
    w.end();
  }
  w.end();
}

}  // namespace culprit::report
