#include "known/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/near.h"

namespace culprit::known {
namespace {

// Reads one record from `at` on, which may span lines inside quotes; false: a quote never closes.
bool read_record(std::string_view text, std::size_t& at, std::vector<std::string>& cells) {
  cells.assign(1, {});
  bool quoted = false;
  while (at < text.size()) {
    const char c = text[at++];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (at < text.size() && text[at] == '"') {
        cells.back() += text[at++];
      } else {
        quoted = false;
      }
    } else if (c == '"' && cells.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return !quoted;
}

bool blank(const std::vector<std::string>& cells) { return cells.size() == 1 && cells[0].empty(); }

template <class Number>
std::optional<Number> parse_number(std::string_view cell) {
  Number value{};
  const char* end = cell.data() + cell.size();
  const auto [stop, code] = std::from_chars(cell.data(), end, value);
  if (cell.empty() || code != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

Result<Csv> Csv::parse(std::string_view text, std::string_view where) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // spreadsheets begin a file with it
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  Csv csv;
  csv.where_ = where;
  std::vector<std::string> cells;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at, first = line;
    const bool closed = read_record(text, at, cells);
    line +=
        static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                            text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    if (!closed) {
      return Error{Error::Code::kBadInput, "a quote is never closed",
                   fmt::format("{}:{}", where, first), "close it, or double it inside a cell"};
    }
    if (blank(cells)) continue;
    if (csv.columns_.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) csv.columns_.emplace(cells[i], i);
      csv.names_ = cells;
      csv.header_line_ = first;
      continue;
    }
    if (cells.size() > csv.columns_.size()) {
      return Error{Error::Code::kBadInput,
                   fmt::format("{} cells under {} columns", cells.size(), csv.columns_.size()),
                   fmt::format("{}:{}", where, first), "quote cells that hold commas"};
    }
    csv.rows_.push_back(std::move(cells));
    csv.lines_.push_back(first);
  }
  if (csv.columns_.empty()) {
    return Error{Error::Code::kBadInput, "no header line", std::string(where),
                 "the first line names the columns"};
  }
  return csv;
}

std::string Csv::place(std::size_t row) const { return fmt::format("{}:{}", where_, lines_[row]); }
std::string Csv::header_place() const { return fmt::format("{}:{}", where_, header_line_); }

Status check(const Csv& csv, const CsvRules& rules) {
  const auto wrong = [](std::string what, std::string where, std::string hint) {
    return Error{Error::Code::kBadInput, std::move(what), std::move(where), std::move(hint)};
  };
  const std::vector<std::string> known(rules.known.begin(), rules.known.end());
  for (const std::string& column : csv.columns()) {
    if (std::find(known.begin(), known.end(), column) != known.end()) continue;
    return wrong(fmt::format("unknown column \"{}\"", column), csv.header_place(),
                 did_you_mean(column, known, fmt::format("columns: {}", fmt::join(known, ", "))));
  }
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    for (const std::string_view column : rules.required) {
      if (csv.cell(row, column).empty())
        return wrong(fmt::format("no {}", column), csv.place(row), "fill in the cell");
    }
    for (const std::string_view column : rules.numbers) {
      const std::string_view cell = csv.cell(row, column);
      const std::optional<double> number = csv.number(row, column);
      if (cell.empty() || (number && *number >= 0 && *number <= 1e9)) continue;
      return wrong(fmt::format("{} is \"{}\"", column, cell), csv.place(row),
                   "a number from 0 to 1e9, or nothing where it is not known");
    }
  }
  return Ok{};
}

std::string_view Csv::cell(std::size_t row, std::string_view column) const {
  const auto found = columns_.find(std::string(column));
  if (found == columns_.end() || row >= rows_.size()) return {};
  const auto& cells = rows_[row];
  return found->second < cells.size() ? std::string_view(cells[found->second]) : std::string_view{};
}

std::optional<double> Csv::number(std::size_t row, std::string_view column) const {
  return parse_number<double>(cell(row, column));
}

std::optional<std::int64_t> Csv::integer(std::size_t row, std::string_view column) const {
  return parse_number<std::int64_t>(cell(row, column));
}

std::vector<std::string> cell_list(std::string_view cell) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < cell.size();) {
    std::size_t end = cell.find(';', begin);
    if (end == std::string_view::npos) end = cell.size();
    std::string_view item = cell.substr(begin, end - begin);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
    begin = end + 1;
  }
  return items;
}

}  // namespace culprit::known
