#include "ingest/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "base/text.h"
#include "ingest/number.h"

namespace culprit::ingest {
namespace {

constexpr int kLongestValue = 16 << 20;  // bytes of one text; names are far shorter

// A path as a URI that asks for a file nobody writes to: no lock, no journal beside it.
std::string immutable_uri(const std::string& path) {
  constexpr std::string_view kPlain = "/-._~";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = path.substr(0, 1) == "/" ? "file://" : "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       kPlain.find(c) != std::string_view::npos;
    if (plain)
      uri += c;
    else
      (uri += '%') += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return uri + "?mode=ro&immutable=1";
}

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + "\"";
}

bool same_name(std::string_view a, std::string_view b) {  // SQLite folds ASCII only
  return a.size() == b.size() &&
         sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

// None: no text, or no memory for it.
std::optional<std::string_view> text_at(sqlite3_stmt* statement, int column) {
  if (sqlite3_column_type(statement, column) != SQLITE_TEXT) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  if (text == nullptr) return std::nullopt;
  return std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

std::string column_text(sqlite3_stmt* statement, int column) {
  return std::string(text_at(statement, column).value_or(std::string_view{}));
}

Error no_database(const std::string& path, const std::string& why) {
  Error e{Error::Code::kBadInput, "a damaged SQLite database: " + why, path,
          "export the report again: nsys export --type sqlite REPORT.nsys-rep"};
  e.note_code = "not-a-trace";
  return e;
}

// What the header says of the file's length, where the file is shorter.
std::optional<Error> cut_off(const std::string& path) {
  std::array<unsigned char, 100> header{};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  file.read(reinterpret_cast<char*>(header.data()), header.size());
  if (!file) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::int64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | header[at + i];
    return value;
  };
  const std::int64_t page = number(16, 2) == 1 ? 65536 : number(16, 2);
  const std::int64_t whole = page * number(28, 4);
  const bool sound = page >= 512 && (page & (page - 1)) == 0 && number(24, 4) == number(92, 4);
  if (!sound || size >= whole) return std::nullopt;
  Error e{Error::Code::kBadInput,
          "an SQLite database that is cut off: " + text::count(size) + " of " + text::count(whole) +
              " bytes are there",
          path, "wait until nsys has written its export, and copy it again"};
  e.note_code = "truncated";
  return e;
}

}  // namespace

void Database::Closer::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void Database::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<Database> Database::open(const std::string& path) {
  if (auto error = cut_off(path)) return *error;
  Database database;
  sqlite3* raw = nullptr;
  const int rc =
      sqlite3_open_v2(immutable_uri(path).c_str(), &raw,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database.handle_.reset(raw);
  if (rc != SQLITE_OK)
    return Error{Error::Code::kCannotRead, std::string("cannot read it: ") + sqlite3_errstr(rc),
                 path, "check the path and its permissions"};
  TRY([[maybe_unused]] const Ok safe, database.make_safe(path));
  TRY([[maybe_unused]] const Ok read, database.read_tables(path));
  return database;
}

Result<Database> Database::from_memory(std::string_view bytes) {
  Database database;
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(
      ":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY, nullptr);
  database.handle_.reset(raw);
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
  if (rc != SQLITE_OK || copy == nullptr)
    return Error{Error::Code::kCannotRead, "out of memory", "memory", ""};
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  // The copy is SQLite's from here on, also where this fails.
  if (sqlite3_deserialize(raw, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK)
    return no_database("memory", "it cannot be loaded");
  TRY([[maybe_unused]] const Ok safe, database.make_safe("memory"));
  TRY([[maybe_unused]] const Ok read, database.read_tables("memory"));
  return database;
}

Status Database::make_safe(const std::string& path) {
  sqlite3* db = handle_.get();
  constexpr std::array<std::array<int, 2>, 7> kSwitches{{{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                                         {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                                         {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                                         {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                                         {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                                         {SQLITE_DBCONFIG_DQS_DML, 0},
                                                         {SQLITE_DBCONFIG_DQS_DDL, 0}}};
  for (const auto& [what, value] : kSwitches) sqlite3_db_config(db, what, value, nullptr);
  // The limits hold for the schema's text as well, which is parsed whole, views of other tools too.
  constexpr std::array<std::array<int, 2>, 4> kLimits{{{SQLITE_LIMIT_LENGTH, kLongestValue},
                                                       {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
                                                       {SQLITE_LIMIT_ATTACHED, 0},
                                                       {SQLITE_LIMIT_WORKER_THREADS, 0}}};
  for (const auto& [what, value] : kLimits) sqlite3_limit(db, what, value);
  constexpr const char* kPragmas =
      "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA query_only=ON";
  if (sqlite3_exec(db, kPragmas, nullptr, nullptr, nullptr) != SQLITE_OK)
    return no_database(path, last_error());
  return Ok{};
}

// Views and virtual tables have no root page.
Status Database::read_tables(const std::string& path) {
  const Statement statement =
      prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
  if (statement == nullptr) return no_database(path, last_error());
  int rc = SQLITE_ROW;
  while ((rc = sqlite3_step(statement.get())) == SQLITE_ROW)
    tables_.push_back(column_text(statement.get(), 0));
  if (rc != SQLITE_DONE) return no_database(path, last_error());
  return Ok{};
}

Database::Statement Database::prepare(const std::string& sql) const {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), static_cast<int>(sql.size()), &raw, nullptr) !=
      SQLITE_OK)
    return nullptr;
  return Statement(raw);
}

std::string_view Database::spelling(std::string_view table) const {
  for (const std::string& name : tables_)
    if (same_name(name, table)) return name;
  return {};
}

std::string Database::last_error() const { return sqlite3_errmsg(handle_.get()); }

// table_info leaves out generated and hidden columns.
std::vector<std::string> Database::columns(std::string_view table) const {
  std::vector<std::string> columns;
  const std::string_view name = spelling(table);
  if (name.empty()) return columns;
  const Statement statement = prepare("PRAGMA table_info(" + quoted(name) + ")");
  while (statement != nullptr && sqlite3_step(statement.get()) == SQLITE_ROW)
    columns.push_back(column_text(statement.get(), 1));
  return columns;
}

bool Database::is_key(std::string_view table, std::string_view column) const {
  bool found = false, another = false;
  const std::string_view name = spelling(table);
  const Statement statement = prepare("PRAGMA table_info(" + quoted(name) + ")");
  while (statement != nullptr && sqlite3_step(statement.get()) == SQLITE_ROW) {
    if (sqlite3_column_int(statement.get(), 5) == 0) continue;
    (same_name(column_text(statement.get(), 1), column) ? found : another) = true;
  }
  return found && !another;
}

std::int64_t Database::largest_rowid(std::string_view table) const {
  const std::string_view name = spelling(table);
  if (name.empty()) return 0;
  const Statement statement =
      prepare("SELECT rowid FROM " + quoted(name) + " NOT INDEXED ORDER BY rowid DESC LIMIT 1");
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return 0;
  return std::max<std::int64_t>(0, sqlite3_column_int64(statement.get(), 0));
}

Cursor::Cursor(const Database& database, std::string_view table,
               std::span<const std::string_view> columns)
    : database_(database), present_(columns.size(), false) {
  const std::string_view name = database.spelling(table);
  if (name.empty()) return;
  const std::vector<std::string> known = database.columns(name);
  std::string sql = "SELECT rowid";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const auto& column) { return same_name(column, columns[i]); });
    present_[i] = at != known.end();
    sql += ", " + (present_[i] ? quoted(*at) : std::string("NULL"));
  }
  statement_ = database.prepare(sql + " FROM " + quoted(name) + " NOT INDEXED WHERE rowid >= ?1");
  next_ = std::numeric_limits<std::int64_t>::min();
  if (statement_ == nullptr)
    note(database.last_error());
  else
    sqlite3_bind_int64(statement_.get(), 1, next_);
}

void Cursor::note(std::string why) {
  if (damage_.places++ > 0) return;
  damage_.after = rowid_;
  damage_.why = std::move(why);
}

int Cursor::seek(std::int64_t from) {
  sqlite3_reset(statement_.get());
  sqlite3_bind_int64(statement_.get(), 1, from);
  return sqlite3_step(statement_.get());
}

// Tries ever farther rowids until one lies on a page that can be read.
int Cursor::skip_damage() {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 40, kMostPlaces = 1000;
  int rc = SQLITE_DONE;
  for (std::int64_t jump = 1; jump < kFarthest && damage_.places < kMostPlaces; jump *= 2) {
    std::int64_t from = 0;
    if (__builtin_add_overflow(next_, jump, &from)) return SQLITE_DONE;
    rc = seek(from);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) return rc;
  }
  return SQLITE_DONE;
}

bool Cursor::next() {
  if (statement_ == nullptr) return false;
  int rc = sqlite3_step(statement_.get());
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
    note(database_.last_error());
    rc = skip_damage();
  }
  if (rc == SQLITE_ROW) {
    rowid_ = sqlite3_column_int64(statement_.get(), 0);
    // Rows that go back come from pages that point at one another in a circle.
    if (rowid_ >= next_ && rowid_ < std::numeric_limits<std::int64_t>::max()) {
      next_ = rowid_ + 1;
      return true;
    }
    note("rows stand out of order");
  }
  statement_.reset();
  return false;
}

bool Cursor::absent(std::size_t column) const {
  return sqlite3_column_type(statement_.get(), static_cast<int>(column) + 1) == SQLITE_NULL;
}

std::optional<std::int64_t> Cursor::integer(std::size_t column) const {
  const int at = static_cast<int>(column) + 1;
  switch (sqlite3_column_type(statement_.get(), at)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement_.get(), at);
    case SQLITE_FLOAT: {
      constexpr double kExact = 9007199254740992.0;  // beyond 2^53 a double has lost digits
      const double value = sqlite3_column_double(statement_.get(), at);
      if (std::abs(value) > kExact || value != std::floor(value)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    case SQLITE_TEXT:
      return parse_integer(*text(column));
    default:
      return std::nullopt;
  }
}

std::optional<double> Cursor::number(std::size_t column) const {
  const int at = static_cast<int>(column) + 1;
  const int type = sqlite3_column_type(statement_.get(), at);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_double(statement_.get(), at);
}

std::optional<std::string_view> Cursor::text(std::size_t column) const {
  return text_at(statement_.get(), static_cast<int>(column) + 1);
}

Lookup::Lookup(const Database& database, std::string_view table, std::string_view key,
               std::string_view value)
    : statement_(database.prepare("SELECT " + quoted(value) + " FROM " + quoted(table) + " WHERE " +
                                  quoted(key) + " = ?1")) {}

std::optional<std::string_view> Lookup::find(std::int64_t key) {
  if (statement_ == nullptr) return std::nullopt;
  sqlite3_reset(statement_.get());
  if (sqlite3_bind_int64(statement_.get(), 1, key) != SQLITE_OK ||
      sqlite3_step(statement_.get()) != SQLITE_ROW)
    return std::nullopt;
  return text_at(statement_.get(), 0);
}

}  // namespace culprit::ingest
