// The reader of Nsight Systems' SQLite exports (`nsys export --type sqlite`), of schema 2 (2021) to
// 3.25 (2026). Tables and columns are found by looking: what an export lacks costs what it would
// have held. docs/trace-support.md says what becomes of which table.
#pragma once

#include <memory>
#include <string>

#include "ingest/ingest.h"
#include "ingest/sqlite.h"

namespace culprit::ingest {

bool is_sqlite_file(const std::string& path);  // a regular file that begins like one
Result<std::unique_ptr<store::Trace>> load_nsight(const std::string& path, const Options& options);

// The same from an open database. The trace's path and file_bytes are set. Errors: no export of
// Nsight Systems; cancelled.
Status read_nsight(const Database& database, const Options& options, store::Trace& trace);

}  // namespace culprit::ingest
