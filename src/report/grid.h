// Grid: typed rows and columns, shown as an aligned text table or as JSON objects. In text each
// column has one unit, numbers stand right, names left; names give way in the middle where the
// width is short. Columns that add up get the sums of the rows left out and of all rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/json_writer.h"
#include "report/report.h"

namespace culprit::report {

enum class CellKind : std::uint8_t {
  kText,    // std::string
  kTime,    // std::int64_t, ns
  kDelta,   // std::int64_t, ns, shown with its sign
  kCount,   // std::int64_t
  kShare,   // double, 0..1
  kNumber,  // double
  kBar,     // double, 0..1 of the bar's full length; text only
};
using Cell = std::variant<std::monostate, std::string, std::int64_t, double>;  // monostate: unknown

struct Column {
  std::string_view title;  // "per step"
  std::string_view key;    // "ns_per_step"; in JSON; empty: in text only
  CellKind kind = CellKind::kText;
  bool adds = false;   // the rest and the total are sums
  int from_width = 0;  // shown only on lines at least this wide; JSON always has it
};
inline constexpr int kJsonOnly = 1 << 30;  // as Column::from_width

struct Grid {
  std::string caption;  // one line above; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::size_t label_column = 0;  // where the labels of the sums go
  std::string rest_label;        // "smaller owners": for "12 smaller owners"
  std::string total_label;       // empty: no total
};

inline constexpr int kRowsShown = 20;

// Lines without line breaks; at most `max_rows` rows unless options.all. Where nothing adds up, the
// rows left out are named on a line of their own.
std::vector<std::string> grid_lines(const Grid& grid, const TextOptions& options, int max_rows);
// The same as a Markdown table, every column but bars; rows left out, where nothing adds up, are named
// behind it.
std::string grid_markdown(const Grid& grid, const TextOptions& options, int max_rows);
void write_rows(JsonWriter& w, std::string_view key, const Grid& grid);

}  // namespace culprit::report
