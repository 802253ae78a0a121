// Query: SQL over one trace and what was found out about it. SQLite reads the columns where they lie
// (virtual tables, read-only); nothing is copied into a database. A statement is compiled before
// anything is read, and says how far the analysis must go for it. Only what reads is allowed:
// SELECT, VALUES, WITH, EXPLAIN; no ATTACH, no PRAGMA but the descriptions of tables, no extension.
// Cost of a row: a call per column that the statement uses. docs/sql.md is the schema.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/source.h"

namespace culprit::query {

struct Value {
  enum class Kind : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };
  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view bytes;  // of text (UTF-8, as SQLite has it) and blobs; until the next row
};

class Statement {
 public:
  Statement(Statement&&) noexcept;
  ~Statement();

  // How far the analysis must go for all of its columns, and for its tables to have rows at all:
  // where it does not come further, the other columns are NULL.
  Needs needs() const;
  Needs needs_at_least() const;
  const std::vector<std::string>& columns() const;  // their names; at least one
  // `source` must hold what the statement needs, and outlive it. `go_on` is asked every few
  // milliseconds of work; false ends the statement (Error kInterrupted). May be called once.
  void start(const Source& source, std::function<bool()> go_on);
  // False: no more rows. Errors: kUnsupported where a value or a row grows beyond all measure.
  Result<bool> next();
  Value value(std::size_t column) const;  // of the row that next() reached

 private:
  friend Result<Statement> compile(const std::string& sql);
  struct State;
  explicit Statement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Error kUsage: what is wrong with the query, where (an excerpt with a mark under the place), and the
// near names of tables and columns.
Result<Statement> compile(const std::string& sql);

// What there is, for people: names of tables; and CREATE TABLE statements with each column's meaning,
// of all tables or of one (kUsage where it does not exist).
std::string list_tables();
Result<std::string> describe_tables(const std::string& table);

}  // namespace culprit::query
