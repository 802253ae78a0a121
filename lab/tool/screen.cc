#include "lab/tool/screen.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/text.h"

namespace culprit::lab {
namespace {

Error cannot_write(const std::string& where) {
  return {.code = Error::Code::kCannotRead,
          .what = "cannot be written",
          .where = where,
          .hint = "does the folder exist, and is there room?",
          .note_code = {}};
}

bool draws_on(std::FILE* err) {
  return term::is_terminal(err) || std::getenv(kDrawsBehindMpirun) != nullptr;
}

bool put(std::FILE* stream, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size();
}

}  // namespace

Screen::Screen(std::FILE* out, std::FILE* err, const Options& options, bool speaks)
    : out_(out),
      speaks_(speaks),
      progress_(err, speaks && !options.quiet && draws_on(err),
                term::width(term::read_environment(), term::terminal_columns(err)),
                term::Progress::Clock::now()),
      options_(options) {}

void Screen::progress(std::string_view line) {
  const auto now = term::Progress::Clock::now();
  if (progress_.due(now)) progress_.show(line, now);
}

Status Screen::part(const std::string& text) {
  progress_.erase();
  if (options_.json == "-") return Ok{};
  if (!put(out_, text) || std::fflush(out_) != 0) return cannot_write("the standard output");
  return Ok{};
}

Status Screen::answer(const std::string& text, const std::string& json) {
  progress_.erase();
  if (!speaks_) return Ok{};
  const bool only_json = options_.json == "-";
  if (!put(out_, only_json ? json : text)) return cannot_write("the standard output");
  if (!options_.json || only_json) return Ok{};
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(options_.json->c_str(), "wb"));
  if (!file || !put(file.get(), json)) return cannot_write(*options_.json);
  return Ok{};
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], text::display_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i < left ? text::pad_right(row[i], widths[i]) : text::pad_left(row[i], widths[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace culprit::lab
