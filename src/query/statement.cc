// A connection with the tables on it, one statement, and what may not be asked.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/near.h"
#include "base/usage.h"
#include "query/virtual_table.h"

namespace culprit::query {
namespace {

constexpr int kLongestValue = 100'000'000;      // bytes of a value or a row
constexpr int kStepsBetweenQuestions = 50'000;  // of SQLite's machine: about a millisecond

template <std::size_t N>
bool is_one_of(const char* word, const std::array<std::string_view, N>& names) {
  return word != nullptr && std::find(names.begin(), names.end(), word) != names.end();
}

struct NeedsSeen {
  Needs of_columns = Needs::kNothing, of_tables = Needs::kNothing;
};

// What compiling a statement tells: tables and columns that it reads.
int authorize(void* seen, int action, const char* first, const char* second, const char*,
              const char*) {
  constexpr std::array<std::string_view, 6> kDescribing{"table_info",     "table_xinfo",
                                                        "table_list",     "function_list",
                                                        "collation_list", "compile_options"};
  constexpr std::array<std::string_view, 2> kForbidden{"load_extension", "fts3_tokenizer"};
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return is_one_of(second, kForbidden) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return is_one_of(first, kDescribing) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_READ:
      break;
    default:
      return SQLITE_DENY;
  }
  const Table* table = first != nullptr ? find_table(first) : nullptr;
  if (table == nullptr) return SQLITE_OK;
  NeedsSeen& needs = *static_cast<NeedsSeen*>(seen);
  needs.of_tables = std::max(needs.of_tables, table->needs);
  needs.of_columns = std::max(needs.of_columns, table->needs);
  for (const Column& column : table->columns)
    if (second != nullptr && column.name == second)
      needs.of_columns = std::max(needs.of_columns, column.needs);
  return SQLITE_OK;
}

// What stands behind `prefix` in a message of SQLite; empty where it says something else.
std::string_view behind(std::string_view message, std::string_view prefix) {
  return message.starts_with(prefix) ? message.substr(prefix.size()) : std::string_view();
}

std::string near_column(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  std::vector<std::string> columns;
  std::string owners;
  for (const Table* table : tables()) {
    for (const Column& column : table->columns) {
      if (column.name == name) owners += (owners.empty() ? "" : ", ") + std::string(table->name);
      if (std::find(columns.begin(), columns.end(), column.name) == columns.end())
        columns.emplace_back(column.name);
    }
  }
  if (!owners.empty()) return fmt::format("{} is a column of {}", name, owners);
  return did_you_mean(name, columns, "`culprit sql .schema` lists the columns");
}

std::string hint_for(std::string_view message) {
  if (const std::string_view table = behind(message, "no such table: "); !table.empty()) {
    std::vector<std::string> names;
    for (const Table* each : tables()) names.emplace_back(each->name);
    return did_you_mean(table, names, "`culprit sql .tables` lists the tables");
  }
  if (const std::string_view column = behind(message, "no such column: "); !column.empty())
    return near_column(column);
  return "`culprit sql .schema` lists tables and columns; https://sqlite.org/lang.html the "
         "language";
}

Error refused(sqlite3* db, std::string_view sql) {
  const std::string message = sqlite3_errmsg(db);
  if (sqlite3_errcode(db) == SQLITE_AUTH || sqlite3_extended_errcode(db) == SQLITE_AUTH)
    return usage("only what reads is allowed: SELECT, WITH, VALUES, EXPLAIN",
                 "nothing can be written: the tables are the trace itself");
  Error error = usage(message, hint_for(message));
  std::size_t place = std::string::npos;
  if (const int offset = sqlite3_error_offset(db); offset >= 0) {
    place = static_cast<std::size_t>(offset);
  } else if (const std::string_view table = behind(message, "no such table: "); !table.empty()) {
    place = sql.find(table);
  }
  if (place < sql.size()) {
    constexpr std::size_t kShown = 40;
    const std::string_view rest = sql.substr(place);
    error.what +=
        fmt::format(", at \"{}{}\"", rest.substr(0, kShown), rest.size() > kShown ? "..." : "");
    error.where = fmt::format("query, byte {}", place);
  }
  return error;
}

bool holds_a_statement(sqlite3* db, const char* sql) {
  sqlite3_stmt* more = nullptr;
  const int compiled = sqlite3_prepare_v2(db, sql, -1, &more, nullptr);
  const bool some = compiled != SQLITE_OK || more != nullptr;
  sqlite3_finalize(more);
  return some;
}

}  // namespace

struct Statement::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    sqlite3_finalize(statement);
    sqlite3_close(db);
  }

  bool open() {
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return false;
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kLongestValue);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // Sorting spills to a file beyond this.
    sqlite3_exec(db, "PRAGMA cache_size=-65536", nullptr, nullptr, nullptr);
    links.reserve(tables().size());  // SQLite holds their addresses
    for (const Table* table : tables()) {
      links.push_back({table, &link});
      if (add_table(db, links.back()) != SQLITE_OK) return false;
    }
    // These tables of SQLite make themselves when they are first named, which nobody may later on.
    sqlite3_exec(db,
                 "SELECT 1 FROM json_each('[]'), json_tree('[]'), pragma_table_info('x'), "
                 "pragma_table_xinfo('x'), pragma_table_list, pragma_function_list",
                 nullptr, nullptr, nullptr);
    sqlite3_set_authorizer(db, authorize, &needs);
    return true;
  }

  Link link;
  std::vector<TableLink> links;
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  NeedsSeen needs;
  std::vector<std::string> columns;
  std::function<bool()> go_on;
};

Statement::Statement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Statement::Statement(Statement&&) noexcept = default;
Statement::~Statement() = default;

Needs Statement::needs() const { return state_->needs.of_columns; }
Needs Statement::needs_at_least() const { return state_->needs.of_tables; }
const std::vector<std::string>& Statement::columns() const { return state_->columns; }

void Statement::start(const Source& source, std::function<bool()> go_on) {
  state_->link.source = &source;
  state_->go_on = std::move(go_on);
  if (!state_->go_on) return;
  sqlite3_progress_handler(
      state_->db, kStepsBetweenQuestions,
      [](void* state) { return static_cast<State*>(state)->go_on() ? 0 : 1; }, state_.get());
}

Result<bool> Statement::next() {
  const int step = sqlite3_step(state_->statement);
  if (step == SQLITE_ROW) return true;
  if (step == SQLITE_DONE) return false;
  if (step == SQLITE_INTERRUPT) return Error{Error::Code::kInterrupted, "interrupted", "", ""};
  return Error{.code = step == SQLITE_ERROR ? Error::Code::kUsage : Error::Code::kUnsupported,
               .what = sqlite3_errmsg(state_->db),
               .where = "query",
               .hint = step == SQLITE_ERROR ? "" : "ask for less: WHERE, LIMIT, fewer columns",
               .note_code = {}};
}

Value Statement::value(std::size_t column) const {
  const int c = static_cast<int>(column);
  sqlite3_stmt* s = state_->statement;
  Value value;
  switch (sqlite3_column_type(s, c)) {
    case SQLITE_INTEGER:
      value.kind = Value::Kind::kInteger;
      value.integer = sqlite3_column_int64(s, c);
      break;
    case SQLITE_FLOAT:
      value.kind = Value::Kind::kReal;
      value.real = sqlite3_column_double(s, c);
      break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
      const bool text = sqlite3_column_type(s, c) == SQLITE_TEXT;
      value.kind = text ? Value::Kind::kText : Value::Kind::kBlob;
      const void* bytes = text ? sqlite3_column_text(s, c) : sqlite3_column_blob(s, c);
      if (bytes != nullptr)
        value.bytes = {static_cast<const char*>(bytes),
                       static_cast<std::size_t>(sqlite3_column_bytes(s, c))};
      break;
    }
    default:
      break;
  }
  return value;
}

Result<Statement> compile(const std::string& sql) {
  if (sql.find('\0') != std::string::npos) return usage("the query has a zero byte in it");
  auto state = std::make_unique<Statement::State>();
  if (!state->open())
    return Error{.code = Error::Code::kUnsupported,
                 .what = "SQLite cannot be started",
                 .where = {},
                 .hint = "is there memory left?",
                 .note_code = {}};
  const char* rest = nullptr;
  const int compiled = sqlite3_prepare_v2(state->db, sql.c_str(), -1, &state->statement, &rest);
  if (compiled != SQLITE_OK) return refused(state->db, sql);
  if (state->statement == nullptr)
    return usage("the query is empty", "culprit sql TRACE \"SELECT * FROM summary\"");
  const NeedsSeen needs = state->needs;
  if (holds_a_statement(state->db, rest))
    return usage("more than one statement", "ask one SELECT at a time");
  state->needs = needs;
  if (sqlite3_bind_parameter_count(state->statement) > 0)
    return usage("the query has parameters, which nobody gives a value",
                 "write the values themselves into it");
  const int columns = sqlite3_column_count(state->statement);
  if (sqlite3_stmt_readonly(state->statement) == 0 || columns == 0)
    return usage("only what reads is allowed: SELECT, WITH, VALUES, EXPLAIN");
  for (int c = 0; c < columns; ++c) {
    const char* name = sqlite3_column_name(state->statement, c);
    state->columns.emplace_back(name == nullptr ? "" : name);
  }
  return Statement(std::move(state));
}

}  // namespace culprit::query
