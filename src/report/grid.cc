#include "report/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/markdown.h"
#include "report/paint.h"

namespace culprit::report {
namespace {

constexpr int kGutter = 2, kNarrowestName = 8, kShortestBar = 6, kLongestBar = 24;

enum class RowRole : std::uint8_t { kTitle, kRow, kRest, kTotal };
struct TextRow {
  RowRole role = RowRole::kRow;
  std::vector<std::string> cells;  // one per visible column
};

struct Layout {
  std::vector<std::size_t> columns;  // indices of the visible ones
  std::vector<int> widths;           // of each visible column
};

bool left_aligned(CellKind kind) { return kind == CellKind::kText || kind == CellKind::kBar; }

std::string bar(double share, int width, bool unicode) {
  const double clamped = std::clamp(share, 0.0, 1.0);
  if (!unicode) {
    return std::string(static_cast<std::size_t>(std::lround(clamped * width)), '#');
  }
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(clamped * width * 8));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + std::string(kEighths[eighths % 8]);
}

// The sum of a column's cells over rows [first, last); unknown cells count nothing.
Cell sum_of(const Grid& grid, std::size_t column, std::size_t first, std::size_t last) {
  std::int64_t whole = 0;
  double real = 0;
  for (std::size_t row = first; row < last; ++row) {
    const Cell& cell = grid.rows[row][column];
    if (const auto* n = std::get_if<std::int64_t>(&cell)) whole += *n;
    if (const auto* x = std::get_if<double>(&cell)) real += *x;
  }
  const CellKind kind = grid.columns[column].kind;
  const bool is_whole =
      kind == CellKind::kTime || kind == CellKind::kDelta || kind == CellKind::kCount;
  if (is_whole) return whole;
  return real;
}

std::vector<Cell> summary_row(const Grid& grid, std::size_t first, std::size_t last,
                              const std::string& label) {
  std::vector<Cell> row;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    row.push_back(grid.columns[c].adds ? sum_of(grid, c, first, last) : Cell(std::string()));
  }
  row[grid.label_column] = label;
  return row;
}

bool any_adds(const Grid& grid) {
  return std::any_of(grid.columns.begin(), grid.columns.end(),
                     [](const Column& column) { return column.adds; });
}

std::string rest_text(const Grid& grid, std::size_t left_out) {
  return fmt::format("{} {}", text::count(static_cast<std::int64_t>(left_out)), grid.rest_label);
}

struct TimeFormat {
  TimeUnit unit = TimeUnit::kNs;
  int decimals = 0;
};

TimeFormat time_format(const std::vector<std::vector<Cell>>& rows, std::size_t column,
                       TimeUnit wanted) {
  Nanos largest = 0;
  for (const auto& row : rows) {
    if (const auto* ns = std::get_if<std::int64_t>(&row[column])) {
      largest = std::max(largest, *ns < 0 ? -*ns : *ns);
    }
  }
  const TimeUnit unit = wanted == TimeUnit::kAuto ? text::unit_for(largest) : wanted;
  return {unit, text::decimals_for(largest, unit)};
}

// Digits after the point of a column of numbers: none for whole ones, else so many that the largest
// has three digits or more.
int number_decimals(const std::vector<std::vector<Cell>>& rows, std::size_t column) {
  double largest = 0;
  bool whole = true;
  for (const auto& row : rows) {
    if (const auto* x = std::get_if<double>(&row[column])) {
      largest = std::max(largest, std::fabs(*x));
      whole = whole && std::trunc(*x) == *x;
    }
  }
  if (whole) return 0;
  return largest < 10 ? 2 : 1;
}

struct ColumnFormat {
  CellKind kind = CellKind::kText;
  TimeFormat time;
  int decimals = 0;
};

std::string cell_text(const Cell& cell, const ColumnFormat& format, bool unicode) {
  if (const auto* words = std::get_if<std::string>(&cell)) {
    const std::string safe = text::clean(*words);
    return unicode ? safe : text::ascii(safe);
  }
  if (const auto* n = std::get_if<std::int64_t>(&cell)) {
    if (format.kind == CellKind::kCount) return text::count(*n);
    const bool plus = format.kind == CellKind::kDelta && *n > 0;
    return fmt::format("{}{} {}", plus ? "+" : "",
                       text::in_unit(*n, format.time.unit, format.time.decimals),
                       text::unit_name(format.time.unit, unicode));
  }
  if (const auto* x = std::get_if<double>(&cell)) {
    if (format.kind == CellKind::kShare) return text::fixed(*x * 100, 1) + " %";
    return text::fixed(*x, format.decimals);
  }
  return "-";
}

// All rows to show: the title, the first `shown` rows, the rest and the total.
std::vector<TextRow> format_rows(const Grid& grid, const Layout& layout, const TextOptions& options,
                                 std::size_t shown) {
  std::vector<std::vector<Cell>> rows(grid.rows.begin(),
                                      grid.rows.begin() + static_cast<std::ptrdiff_t>(shown));
  std::vector<RowRole> roles(shown, RowRole::kRow);
  const std::size_t left_out = grid.rows.size() - shown;
  if (left_out > 0 && any_adds(grid)) {
    rows.push_back(summary_row(grid, shown, grid.rows.size(), rest_text(grid, left_out)));
    roles.push_back(RowRole::kRest);
  }
  if (!grid.total_label.empty()) {
    rows.push_back(summary_row(grid, 0, grid.rows.size(), grid.total_label));
    roles.push_back(RowRole::kTotal);
  }
  std::vector<TextRow> out(rows.size() + 1);
  out[0].role = RowRole::kTitle;
  for (std::size_t r = 0; r < rows.size(); ++r) out[r + 1].role = roles[r];
  for (const std::size_t c : layout.columns) {
    const Column& column = grid.columns[c];
    const ColumnFormat format{column.kind, time_format(rows, c, options.unit),
                              number_decimals(rows, c)};
    out[0].cells.emplace_back(column.title);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      out[r + 1].cells.push_back(cell_text(rows[r][c], format, options.unicode));
    }
  }
  return out;
}

// Natural widths, then the widest names give way until the line fits.
void fit_widths(const Grid& grid, const std::vector<TextRow>& rows, int width, Layout& layout) {
  layout.widths.assign(layout.columns.size(), 0);
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    if (grid.columns[layout.columns[c]].kind == CellKind::kBar) continue;
    for (const TextRow& row : rows) {
      layout.widths[c] = std::max(layout.widths[c], text::display_width(row.cells[c]));
    }
  }
  const auto is_name = [&](std::size_t c) {
    return grid.columns[layout.columns[c]].kind == CellKind::kText;
  };
  const int gutters = kGutter * (static_cast<int>(layout.columns.size()) - 1);
  int total = std::accumulate(layout.widths.begin(), layout.widths.end(), gutters);
  while (total > width) {
    std::size_t widest = layout.widths.size();
    for (std::size_t c = 0; c < layout.widths.size(); ++c) {
      if (!is_name(c) || layout.widths[c] <= kNarrowestName) continue;
      if (widest == layout.widths.size() || layout.widths[c] > layout.widths[widest]) widest = c;
    }
    if (widest == layout.widths.size()) break;
    --layout.widths[widest];
    --total;
  }
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    if (grid.columns[layout.columns[c]].kind != CellKind::kBar) continue;
    const int room = std::min(width - total, kLongestBar);
    layout.widths[c] = room < kShortestBar ? 0 : room;
  }
}

Ink ink_of(RowRole role) {
  if (role == RowRole::kTitle || role == RowRole::kRest) return Ink::kDim;
  return role == RowRole::kTotal ? Ink::kBold : Ink::kPlain;
}

// A label of sums that is too long loses its last words: "all collectives" becomes "all".
std::string shorten_label(std::string label, int width, bool unicode) {
  while (text::display_width(label) > width && label.find(' ') != std::string::npos)
    label.erase(label.rfind(' '));
  return text::shorten_middle(label, width, unicode);
}

std::string line_of(const Grid& grid, const Layout& layout, const TextRow& row,
                    const std::vector<Cell>* cells, const TextOptions& options) {
  std::string line;
  for (std::size_t c = 0; c < layout.columns.size(); ++c) {
    const CellKind kind = grid.columns[layout.columns[c]].kind;
    const int width = layout.widths[c];
    std::string cell = row.cells[c];
    if (kind == CellKind::kBar) {
      const double* share =
          cells == nullptr ? nullptr : std::get_if<double>(&(*cells)[layout.columns[c]]);
      cell = share == nullptr ? std::string() : bar(*share, width, options.unicode);
    }
    if (c > 0) line.append(kGutter, ' ');
    const bool label = row.role == RowRole::kRest || row.role == RowRole::kTotal;
    const std::string fitted = kind != CellKind::kText
                                   ? text::shorten_middle(cell, width, options.unicode)
                               : label ? shorten_label(cell, width, options.unicode)
                                       : text::shorten_name(cell, width, options.unicode);
    line += left_aligned(kind) ? text::pad_right(fitted, width) : text::pad_left(fitted, width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return paint(line, ink_of(row.role), options.color);
}

}  // namespace

std::vector<std::string> grid_lines(const Grid& grid, const TextOptions& options, int max_rows) {
  Layout layout;
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    if (grid.columns[c].from_width <= options.width) layout.columns.push_back(c);
  }
  const std::size_t shown =
      options.all ? grid.rows.size()
                  : std::min(grid.rows.size(), static_cast<std::size_t>(std::max(max_rows, 0)));
  if (grid.rows.empty()) {
    return text::wrap(grid.caption.empty() ? std::string("none") : grid.caption, options.width);
  }
  const std::vector<TextRow> rows = format_rows(grid, layout, options, shown);
  fit_widths(grid, rows, options.width, layout);
  std::vector<std::string> lines;
  if (!grid.caption.empty()) {
    for (std::string& line : text::wrap(grid.caption, options.width)) lines.push_back(line);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool of_grid = rows[r].role == RowRole::kRow;
    lines.push_back(line_of(grid, layout, rows[r], of_grid ? &grid.rows[r - 1] : nullptr, options));
  }
  if (shown < grid.rows.size() && !any_adds(grid)) {
    lines.push_back(paint(rest_text(grid, grid.rows.size() - shown), Ink::kDim, options.color));
  }
  return lines;
}

std::string grid_markdown(const Grid& grid, const TextOptions& options, int max_rows) {
  if (grid.rows.empty())
    return markdown_text(grid.caption.empty() ? std::string_view("none") : grid.caption) + "\n";
  Layout layout;
  for (std::size_t c = 0; c < grid.columns.size(); ++c)
    if (grid.columns[c].kind != CellKind::kBar && grid.columns[c].from_width <= options.width)
      layout.columns.push_back(c);
  const std::size_t shown =
      options.all ? grid.rows.size()
                  : std::min(grid.rows.size(), static_cast<std::size_t>(std::max(max_rows, 0)));
  std::string out = grid.caption.empty() ? std::string() : markdown_text(grid.caption) + "\n\n";
  for (const TextRow& row : format_rows(grid, layout, options, shown)) {
    std::vector<std::string> cells, rule;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      std::string cell = markdown_text(row.cells[c]);
      const bool stands_out = row.role == RowRole::kTotal && !cell.empty();
      cells.push_back(stands_out ? "**" + cell + "**" : std::move(cell));
      rule.emplace_back(left_aligned(grid.columns[layout.columns[c]].kind) ? "---" : "---:");
    }
    out += markdown_row(cells);
    if (row.role == RowRole::kTitle) out += markdown_row(rule);
  }
  if (shown < grid.rows.size() && !any_adds(grid))
    out += "\n" + rest_text(grid, grid.rows.size() - shown) + "\n";
  return out;
}

void write_rows(JsonWriter& w, std::string_view key, const Grid& grid) {
  w.begin_array(key, JsonLayout::kBlock);
  for (const auto& row : grid.rows) {
    w.begin_object({}, JsonLayout::kLine);
    for (std::size_t c = 0; c < grid.columns.size(); ++c) {
      const Column& column = grid.columns[c];
      if (column.key.empty()) continue;
      if (const auto* words = std::get_if<std::string>(&row[c])) w.text(column.key, *words);
      if (const auto* n = std::get_if<std::int64_t>(&row[c])) w.integer(column.key, *n);
      if (const auto* x = std::get_if<double>(&row[c])) w.number(column.key, *x, 9);
      if (std::holds_alternative<std::monostate>(row[c])) w.null(column.key);
    }
    w.end();
  }
  w.end();
}

}  // namespace culprit::report
