// Page: lines of a text answer as they are filled. Everything that enters is made safe to print
// (text::clean), fits the width, and is ASCII where Unicode is not wanted.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "report/paint.h"
#include "report/report.h"

namespace culprit::report {

class Page {
 public:
  explicit Page(const TextOptions& options) : options_(options) {}

  // From here on, paragraphs longer than `lines` are cut with an ellipsis; never with options.all.
  void limit_paragraphs(int lines) { paragraph_lines_ = lines; }
  int paragraph_limit() const { return paragraph_lines_; }
  void blank();
  void title(std::string_view text);
  // Wrapped; the first line begins after `indent` spaces, the others after `hang`.
  void paragraph(std::string_view text, int indent, int hang, Ink ink = Ink::kPlain);
  // "   tensor   kv_pool ...": the label in a column of its own. Nothing for an empty text.
  void labelled(std::string_view label, std::string_view text);
  // Two columns: `key` padded to `key_width`, then a wrapped text.
  void entry(std::string_view key, int key_width, std::string_view text, Ink key_ink = Ink::kPlain);
  void lines(std::vector<std::string> ready);  // from grid_lines
  // "at  .../attention/backend.py:639 forward_decode" on one line: leading folders give way.
  void place(const run::Source& source);

  // A path as it fits into `room` columns: leading folders give way to "...".
  std::string drop_folders(std::string_view path, int room) const;

  const TextOptions& options() const { return options_; }
  std::string duration(Nanos ns) const;
  std::string safe(std::string_view text) const;
  std::size_t size() const { return lines_.size(); }
  std::string take();

 private:
  TextOptions options_;
  int paragraph_lines_ = std::numeric_limits<int>::max();
  std::vector<std::string> lines_;
};

// Sections of render_text in files of their own.
void add_rank_of_answer(Page& page, const Answer& answer);
void add_ranks(Page& page, const Answer& answer, int rows);
void add_skipped(Page& page, const FleetFigures& fleet, int rows);  // traces that are no ranks
// Where a suspect's launches stand in the code, or why that is not known.
void add_place(Page& page, const Answer& answer, const verdict::Suspect& suspect);
void add_suspect(Page& page, const Answer& answer, std::size_t index);
void add_suspects(Page& page, const Answer& answer, std::size_t at_most);
void add_ruled_out(Page& page, const Answer& answer, std::size_t at_most);

}  // namespace culprit::report
