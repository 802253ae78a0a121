// Csv: the tables of this layer (gpus.csv, models.csv, and a user's additions in the same form).
// RFC 4180 quoting, a header line, cells addressed by column name. An unknown column is an empty
// cell, so tables may grow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace culprit::known {

// The embedded tables.
extern const std::string_view kGpusCsv;
extern const std::string_view kModelsCsv;

class Csv {
 public:
  // `where` names the table in errors: "gpus.csv:12" with the line a row begins on. Errors: no
  // header, a row with more cells than the header, an open quote.
  static Result<Csv> parse(std::string_view text, std::string_view where);

  std::size_t rows() const { return rows_.size(); }
  // "gpus.csv:12": where a row, or the header, begins.
  std::string place(std::size_t row) const;
  std::string header_place() const;
  const std::vector<std::string>& columns() const { return names_; }  // in order
  // "" where the column or the cell is missing.
  std::string_view cell(std::size_t row, std::string_view column) const;
  // None where the cell is empty or no number.
  std::optional<double> number(std::size_t row, std::string_view column) const;
  std::optional<std::int64_t> integer(std::size_t row, std::string_view column) const;

 private:
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> names_;
  std::vector<std::size_t> lines_;  // of each row, from 1
  std::size_t header_line_ = 1;
  std::string where_;
};

// A table that a user wrote: unknown columns, and cells of `numbers` that are no number above 0,
// are errors that name file, line and column; so is a row without a cell of `required`.
struct CsvRules {
  std::vector<std::string_view> known, numbers, required;
};
Status check(const Csv& csv, const CsvRules& rules);

// "a; b; c" -> {"a", "b", "c"}: lists inside a cell.
std::vector<std::string> cell_list(std::string_view cell);

}  // namespace culprit::known
