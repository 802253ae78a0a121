#include "known/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

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
  Csv csv;
  std::vector<std::string> cells;
  std::size_t record = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++record;
    if (!read_record(text, at, cells)) {
      return Error{Error::Code::kBadInput, "a quote is never closed",
                   fmt::format("{}: record {}", where, record),
                   "close it, or double it inside a cell"};
    }
    if (blank(cells)) continue;
    if (csv.columns_.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) csv.columns_.emplace(cells[i], i);
      continue;
    }
    if (cells.size() > csv.columns_.size()) {
      return Error{Error::Code::kBadInput,
                   fmt::format("{} cells under {} columns", cells.size(), csv.columns_.size()),
                   fmt::format("{}: record {}", where, record), "quote cells that hold commas"};
    }
    csv.rows_.push_back(std::move(cells));
  }
  if (csv.columns_.empty()) {
    return Error{Error::Code::kBadInput, "no header line", std::string(where),
                 "the first line names the columns"};
  }
  return csv;
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
