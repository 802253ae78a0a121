#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/table.h"

namespace culprit::report {
namespace {

constexpr int kLabelIndent = 3, kLabelWidth = 9;

std::string spaces(int n) { return std::string(static_cast<std::size_t>(std::max(0, n)), ' '); }

}  // namespace

std::string Page::safe(std::string_view text) const {
  const std::string printable = text::clean(text);
  return options_.unicode ? printable : text::ascii(printable);
}

std::string Page::duration(Nanos ns) const {
  if (options_.unit == TimeUnit::kAuto) return text::duration(ns, options_.unicode);
  return fmt::format("{} {}",
                     text::in_unit(ns, options_.unit, text::decimals_for(ns, options_.unit)),
                     text::unit_name(options_.unit, options_.unicode));
}

void Page::blank() {
  if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
}

void Page::title(std::string_view text) {
  blank();
  lines_.push_back(paint(text, Ink::kBold, options_.color));
}

void Page::paragraph(std::string_view text, int indent, int hang, Ink ink) {
  const std::string printable = safe(text);
  std::vector<std::string> wrapped = text::wrap(printable, options_.width - std::max(indent, hang));
  const auto limit = static_cast<std::size_t>(paragraph_lines_);
  if (!options_.all && wrapped.size() > limit) {
    wrapped.resize(limit);
    const std::string_view mark = options_.unicode ? " …" : " ...";
    const int room = options_.width - std::max(indent, hang) - text::display_width(mark);
    std::vector<std::string> last = text::wrap(wrapped.back(), room);
    wrapped.back() = (last.empty() ? std::string() : last.front()) + std::string(mark);
  }
  for (std::size_t i = 0; i < wrapped.size(); ++i) {
    lines_.push_back(spaces(i == 0 ? indent : hang) + paint(wrapped[i], ink, options_.color));
  }
}

void Page::labelled(std::string_view label, std::string_view text) {
  if (text.empty()) return;
  const std::size_t first = lines_.size();
  paragraph(text, kLabelIndent + kLabelWidth, kLabelIndent + kLabelWidth);
  if (lines_.size() == first) return;
  const std::string head = text::pad_right(label, kLabelWidth);
  lines_[first].replace(0, kLabelIndent + kLabelWidth,
                        spaces(kLabelIndent) + paint(head, Ink::kDim, options_.color));
}

void Page::entry(std::string_view key, int key_width, std::string_view text, Ink key_ink) {
  constexpr int kIndent = 2;
  const int hang = kIndent + key_width + 2;
  const std::string head =
      text::pad_right(text::shorten_middle(safe(key), key_width, options_.unicode), key_width);
  const std::size_t first = lines_.size();
  paragraph(text, hang, hang);
  if (lines_.size() == first) lines_.push_back(spaces(hang));
  lines_[first].replace(0, static_cast<std::size_t>(hang - 2),
                        spaces(kIndent) + paint(head, key_ink, options_.color));
}

void Page::place(const run::Source& source) {
  const int room = options_.width - kLabelIndent - kLabelWidth;
  const std::string text = drop_folders(place_of(source), room);
  labelled("at", text::shorten_middle(text, room, options_.unicode));
}

std::string Page::drop_folders(std::string_view path, int room) const {
  std::string text = safe(path);
  while (text::display_width(text) > room) {
    const std::size_t slash = text.find('/', text.starts_with(".../") ? 4 : 1);
    if (slash == std::string::npos) break;
    text.replace(0, slash, "...");
  }
  return text;
}

void Page::lines(std::vector<std::string> ready) {
  lines_.insert(lines_.end(), std::make_move_iterator(ready.begin()),
                std::make_move_iterator(ready.end()));
}

std::string Page::take() {
  std::string out;
  for (const std::string& line : lines_) {
    out += line;
    out += '\n';
  }
  lines_.clear();
  return out;
}

}  // namespace culprit::report
