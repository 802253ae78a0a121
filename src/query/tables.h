// Tables: the schema of `culprit sql` as data. A table is a list of columns, each with a function
// that puts the value of one row; what can be looked up without reading all rows is a Key. The one
// list that the virtual tables, `.schema` and docs/sql.md are made from. Internal to this layer.
#pragma once

#include <sqlite3.h>

#include <cmath>
#include <span>
#include <string_view>

#include "query/query.h"

namespace culprit::query {

// Where a column function puts its value; one call each.
class Cell {
 public:
  explicit Cell(sqlite3_context* context) : context_(context) {}
  void null() const { sqlite3_result_null(context_); }
  void integer(std::int64_t value) const { sqlite3_result_int64(context_, value); }
  void integer(std::optional<std::int64_t> value) const { value ? integer(*value) : null(); }
  void known(std::int64_t value) const {
    value >= 0 ? integer(value) : null();
  }  // below 0: unknown
  void positive(std::int64_t value) const { value > 0 ? integer(value) : null(); }  // 0: unknown
  void index(std::optional<std::size_t> value) const {
    value ? integer(static_cast<std::int64_t>(*value)) : null();
  }
  void truth(bool value) const { integer(value ? 1 : 0); }
  void real(double value) const { sqlite3_result_double(context_, value); }
  void real(std::optional<double> value) const { value ? real(*value) : null(); }
  // A whole number as an integer: no ".0" behind it.
  void number(double value) const {
    constexpr double kExact = 9'007'199'254'740'992;
    const bool whole = std::abs(value) < kExact && value == std::floor(value);
    whole ? integer(static_cast<std::int64_t>(value)) : real(value);
  }
  // A text that lives as long as the statement; empty: NULL.
  void text(std::string_view value) const { value.empty() ? null() : put(value, SQLITE_STATIC); }
  void copy(std::string_view value) const { value.empty() ? null() : put(value, SQLITE_TRANSIENT); }

 private:
  void put(std::string_view value, sqlite3_destructor_type lifetime) const {
    sqlite3_result_text64(context_, value.data(), value.size(), lifetime, SQLITE_UTF8);
  }
  sqlite3_context* context_;
};

enum class Type : std::uint8_t { kInteger, kReal, kText };

struct Column {
  std::string_view name;  // with its unit: begin_ns, bytes
  Type type;
  std::string_view about;  // a few words
  void (*put)(const Source& source, std::size_t row, Cell cell);
  Needs needs = Needs::kNothing;  // beyond what the table needs
};

// Rows first, first + 1, ... last - 1; where `row` is set, these are places in another order, and it
// tells the row.
struct Rows {
  std::size_t first = 0, last = 0;
  std::size_t (*row)(const Source& source, std::size_t place) = nullptr;
};

// Rows that can have `value` in this column: all of them, perhaps others too.
struct Key {
  std::string_view column;
  double cost;  // rows expected
  Rows (*find)(const Source& source, sqlite3_value* value);
};

struct Table {
  std::string_view name;
  std::string_view about;  // a sentence
  Needs needs;
  std::span<const Column> columns;
  std::size_t (*rows)(const Source& source);
  std::span<const Key> keys = {};
  double expected = 100;  // rows, for the plan
};

std::span<const Table* const> tables();  // in the order of the documents
const Table* find_table(std::string_view name);

extern const Table kEvents, kCollectives;               // tables_trace.cc
extern const Table kActivities, kSteps, kLayers;        // tables_run.cc
extern const Table kSummary, kBudget, kKernels, kGaps;  // tables_evidence.cc
extern const Table kFacts, kSuspects, kSuspectKernels, kSuspectFacts, kRuledOut, kNotes,
    kRanks;  // tables_verdict.cc

}  // namespace culprit::query
