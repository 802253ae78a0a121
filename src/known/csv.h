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
  // `where` names the table in errors ("gpus.csv"). Errors: no header, a row with more cells than
  // the header, an open quote.
  static Result<Csv> parse(std::string_view text, std::string_view where);

  std::size_t rows() const { return rows_.size(); }
  // "" where the column or the cell is missing.
  std::string_view cell(std::size_t row, std::string_view column) const;
  // None where the cell is empty or no number.
  std::optional<double> number(std::size_t row, std::string_view column) const;
  std::optional<std::int64_t> integer(std::size_t row, std::string_view column) const;

 private:
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "a; b; c" -> {"a", "b", "c"}: lists inside a cell.
std::vector<std::string> cell_list(std::string_view cell);

}  // namespace culprit::known
