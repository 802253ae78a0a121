// Printer: the rows of a statement as text, one after the other, so that any number of them can be
// shown: a table that aligns, comma-separated values, or one JSON document. Values of the trace are
// made safe to print (text::clean) in tables; CSV and JSON hold them as they are, as valid UTF-8.
// Real numbers have up to 15 digits, as in SQLite.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "query/query.h"
#include "report/report.h"

namespace culprit::query {

enum class Form : std::uint8_t { kTable, kCsv, kJson };

class Printer {
 public:
  virtual ~Printer() = default;
  // The next row of the statement. What is ready to be shown is appended to `out`.
  virtual void row(const Statement& statement, std::string& out) = 0;
  virtual void end(std::string& out) = 0;  // after the last row
};

// What stands in front of the rows of JSON: who says it, and the quality of the input.
std::string document_head(const report::Answer& answer);
// Of tables: columns are as wide as the first 1,000 rows need; texts above 60 columns give way in the
// middle unless options.all. `document`: of JSON, a document_head.
std::unique_ptr<Printer> make_printer(Form form, const std::vector<std::string>& columns,
                                      const report::TextOptions& options,
                                      const std::string& document);

}  // namespace culprit::query
