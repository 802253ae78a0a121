// Database: an SQLite file written by somebody else, opened so that it can do no harm: read-only,
// without journal, lock or mapped memory; real tables only, never a view, a virtual table, a
// generated column or a trigger, whatever they are called. Cursor: the rows of one table, in order
// of rowid, with the columns that the table happens to have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace culprit::ingest {

class Database {
 public:
  // Errors: cannot read; no database although the first bytes say so.
  static Result<Database> open(const std::string& path);
  static Result<Database> from_memory(std::string_view bytes);  // a copy is kept

  const std::vector<std::string>& tables() const { return tables_; }  // in order of creation
  bool has(std::string_view table) const { return !spelling(table).empty(); }
  // Empty where the table is not there or cannot be understood.
  std::vector<std::string> columns(std::string_view table) const;
  bool is_key(std::string_view table, std::string_view column) const;  // its only primary key
  // A bound for the number of rows, without reading them: the largest rowid; 0: none, or unknown.
  std::int64_t largest_rowid(std::string_view table) const;

  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalizer>;
  Statement prepare(const std::string& sql) const;          // null: it cannot be compiled
  std::string_view spelling(std::string_view table) const;  // as the file spells it; else empty
  std::string last_error() const;

 private:
  struct Closer {
    void operator()(sqlite3* handle) const;
  };
  Status make_safe(const std::string& path);
  Status read_tables(const std::string& path);

  std::unique_ptr<sqlite3, Closer> handle_;
  std::vector<std::string> tables_;
};

class Cursor {
 public:
  // `columns` that the table lacks are absent in every row; so is all of a table that is not there.
  Cursor(const Database& database, std::string_view table,
         std::span<const std::string_view> columns);

  bool next();  // false: no more rows that can be read
  // Places where rows could not be read: a damaged page costs the rows on it, and some beside it.
  struct Damage {
    std::int64_t places = 0;
    std::int64_t after = 0;  // rowid of the last row in front of the first
    std::string why;         // of the first
  };
  const Damage& damage() const { return damage_; }
  std::int64_t rowid() const { return rowid_; }
  bool has(std::size_t column) const { return present_[column]; }

  // Of the current row. A value that is there and is not what is asked for gives none as well.
  bool absent(std::size_t column) const;
  std::optional<std::int64_t> integer(std::size_t column) const;  // whole numbers of any type
  std::optional<double> number(std::size_t column) const;
  std::optional<std::string_view> text(std::size_t column) const;  // valid until next()

 private:
  int seek(std::int64_t from);  // to the first row at or behind `from`; SQLite's code
  void note(std::string why);
  int skip_damage();

  const Database& database_;
  Database::Statement statement_;
  std::vector<bool> present_;
  Damage damage_;
  std::int64_t rowid_ = 0;
  std::int64_t next_ = 0;  // the least rowid that may follow
};

// One text by an integer key that the table is ordered by.
class Lookup {
 public:
  Lookup(const Database& database, std::string_view table, std::string_view key,
         std::string_view value);
  std::optional<std::string_view> find(std::int64_t key);  // valid until the next find()

 private:
  Database::Statement statement_;
};

}  // namespace culprit::ingest
