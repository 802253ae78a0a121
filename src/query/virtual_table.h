// VirtualTable: a Table as SQLite sees it: xBestIndex offers its keys, a cursor counts rows, xColumn
// calls the column's function. Read-only. Internal to this layer.
#pragma once

#include <sqlite3.h>

#include <string>

#include "query/tables.h"

namespace culprit::query {

// What all tables of one connection read from; null until the statement starts.
struct Link {
  const Source* source = nullptr;
};

struct TableLink {
  const Table* table = nullptr;
  const Link* link = nullptr;
};

// Adds the table to the connection, under its name. `link` must outlive the connection. SQLite's code.
int add_table(sqlite3* db, TableLink& link);
// "CREATE TABLE events(id INTEGER, ...)" on one line.
std::string declaration(const Table& table);
std::string_view type_name(Type type);

}  // namespace culprit::query
