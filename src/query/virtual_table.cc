#include "query/virtual_table.h"

#include <fmt/format.h>

#include <new>

namespace culprit::query {
namespace {

struct VirtualTable {
  sqlite3_vtab base;  // first: SQLite knows this part alone
  const Table* table;
  const Link* link;
};

struct Cursor {
  sqlite3_vtab_cursor base;
  const Table* table;
  const Source* source;
  Rows rows;
  std::size_t place;
  std::size_t row() const { return rows.row != nullptr ? rows.row(*source, place) : place; }
};

int connect(sqlite3* db, void* aux, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* link = static_cast<const TableLink*>(aux);
  const int declared = sqlite3_declare_vtab(db, declaration(*link->table).c_str());
  if (declared != SQLITE_OK) return declared;
  auto* table = new (std::nothrow) VirtualTable{{}, link->table, link->link};
  if (table == nullptr) return SQLITE_NOMEM;
  *out = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<VirtualTable*>(table);
  return SQLITE_OK;
}

// The key with the fewest rows among those that the query gives a value for; 0: read all rows, else the
// key's place + 1.
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  const Table& table = *reinterpret_cast<VirtualTable*>(base)->table;
  info->estimatedCost = table.expected;
  info->estimatedRows = static_cast<sqlite3_int64>(table.expected);
  int chosen = -1;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    const bool equal = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ && constraint.usable != 0 &&
                       constraint.iColumn >= 0;
    // Another collation finds other rows than the key's.
    if (!equal || std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
    const std::string_view column =
        table.columns[static_cast<std::size_t>(constraint.iColumn)].name;
    for (std::size_t k = 0; k < table.keys.size(); ++k) {
      const Key& key = table.keys[k];
      if (key.column != column || key.cost >= info->estimatedCost) continue;
      chosen = i;
      info->idxNum = static_cast<int>(k) + 1;
      info->estimatedCost = key.cost;
      info->estimatedRows = static_cast<sqlite3_int64>(key.cost);
      info->idxFlags = key.cost <= 1 ? SQLITE_INDEX_SCAN_UNIQUE : 0;
    }
  }
  if (chosen >= 0) info->aConstraintUsage[chosen].argvIndex = 1;  // SQLite checks it again
  return SQLITE_OK;
}

int open(sqlite3_vtab* base, sqlite3_vtab_cursor** out) {
  const auto* table = reinterpret_cast<VirtualTable*>(base);
  auto* cursor = new (std::nothrow) Cursor{{}, table->table, table->link->source, {}, 0};
  if (cursor == nullptr) return SQLITE_NOMEM;
  *out = &cursor->base;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete reinterpret_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int key, const char*, int, sqlite3_value** values) {
  auto* cursor = reinterpret_cast<Cursor*>(base);
  const Table& table = *cursor->table;
  cursor->rows =
      key > 0 ? table.keys[static_cast<std::size_t>(key) - 1].find(*cursor->source, values[0])
              : Rows{0, table.rows(*cursor->source)};
  cursor->place = cursor->rows.first;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* base) {
  ++reinterpret_cast<Cursor*>(base)->place;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* base) {
  const auto* cursor = reinterpret_cast<Cursor*>(base);
  return cursor->place >= cursor->rows.last ? 1 : 0;
}

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  const auto* cursor = reinterpret_cast<Cursor*>(base);
  try {
    cursor->table->columns[static_cast<std::size_t>(column)].put(*cursor->source, cursor->row(),
                                                                 Cell(context));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(reinterpret_cast<Cursor*>(base)->row());
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module{};
  module.xCreate = module.xConnect = connect;
  module.xDestroy = module.xDisconnect = disconnect;
  module.xBestIndex = best_index;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

}  // namespace

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kInteger:
      return "INTEGER";
    case Type::kReal:
      return "REAL";
    case Type::kText:
      break;
  }
  return "TEXT";
}

std::string declaration(const Table& table) {
  std::string columns;
  for (const Column& column : table.columns)
    columns +=
        fmt::format("{}{} {}", columns.empty() ? "" : ", ", column.name, type_name(column.type));
  return fmt::format("CREATE TABLE {}({})", table.name, columns);
}

int add_table(sqlite3* db, TableLink& link) {
  static const sqlite3_module module = make_module();
  const std::string name(link.table->name);
  const int made = sqlite3_create_module(db, name.c_str(), &module, &link);
  if (made != SQLITE_OK) return made;
  return sqlite3_exec(db, fmt::format("CREATE VIRTUAL TABLE {0} USING {0}", name).c_str(), nullptr,
                      nullptr, nullptr);
}

}  // namespace culprit::query
