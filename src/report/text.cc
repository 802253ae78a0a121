// The one-screen verdict: what was read, the headline, where a step goes, who is to blame, who is
// not, what the input lacks, and what to ask next. Tries less and less detail until it fits.
#include <fmt/format.h>

#include <algorithm>

#include "report/note_guide.h"
#include "report/page.h"
#include "report/table.h"
#include "report/views.h"
#include "report/words.h"

namespace culprit::report {
namespace {

constexpr std::size_t kScreenLines = 40;
constexpr int kEverything = 1 << 30;  // room to add to it

// How much of each section is shown, from much to little.
struct Detail {
  int budget_rows, suspects, ruled_out, notes, next;
};
constexpr Detail kAll{kEverything, kEverything, kEverything, kEverything, kEverything};
constexpr Detail kDetails[] = {
    {12, 4, 10, 6, 3}, {10, 3, 8, 4, 3}, {8, 3, 6, 3, 3}, {7, 3, 5, 3, 3}, {6, 2, 5, 2, 3},
    {6, 2, 4, 2, 2},   {5, 2, 3, 2, 2},  {5, 1, 3, 1, 1}, {4, 1, 3, 1, 1}, {3, 1, 3, 1, 1}};
// Sentences are cut only when fewer rows do not help.
constexpr int kParagraphLines[] = {4, 3, 2, 1};

// Of several files the folder of the first.
void add_files(Page& page, const Answer& answer) {
  const std::string size = size_text(answer);
  const std::string& first = answer.inputs.front().path;
  const std::size_t slash = first.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : first.substr(0, slash) + ": ";
  page.paragraph(page.drop_folders(folder, page.options().width - text::display_width(size)) + size,
                 0, 2);
}

void add_head(Page& page, const Answer& answer) {
  const std::string input = answer.path == "-" ? "standard input" : answer.path;
  std::string size = size_text(answer);
  if (!size.empty()) size = ": " + size;
  if (!answer.inputs.empty()) {
    add_files(page, answer);
  } else {
    page.paragraph(
        page.drop_folders(input, page.options().width - text::display_width(size)) + size, 0, 2);
  }
  add_rank_of_answer(page, answer);
  page.paragraph(steps_text(page, answer), 0, 2);
  page.paragraph(device_text(answer), 0, 2);
  if (answer.floor != nullptr && !answer.floor->contradicted) {
    page.paragraph(fmt::format("hardware floor {} per step; `culprit floor` tells it by component",
                               page.duration(answer.floor->floor.step)),
                   0, 2);
  }
}

void add_headline(Page& page, const Answer& answer) {
  const verdict::Verdict& verdict = *answer.verdict;
  page.blank();
  const bool guilty =
      !verdict.suspects.empty() && verdict.suspects[0].standing == verdict::Standing::kCulprit;
  page.paragraph(verdict.headline, 0, 0, guilty ? Ink::kRed : Ink::kBold);
  if (verdict.suspects.empty()) return;
  const verdict::Suspect& first = verdict.suspects.front();
  add_place(page, answer, first);
  page.labelled("fix buys", gain_text(page, first.gain));
}

void add_budget(Page& page, const Answer& answer, int rows) {
  page.blank();
  const Grid grid = budget_grid(answer);
  const int size = static_cast<int>(grid.rows.size());
  // One row left out is shown as well as named.
  page.lines(grid_lines(grid, page.options(), rows + 1 == size ? size : rows));
}

Ink ink_of(store::Severity severity) {
  return severity == store::Severity::kInfo ? Ink::kDim : Ink::kYellow;
}

void add_notes(Page& page, const Answer& answer, int at_most) {
  std::vector<store::Note> notes = all_notes(answer);
  if (notes.empty()) return;
  std::stable_sort(notes.begin(), notes.end(), [](const store::Note& a, const store::Note& b) {
    return a.severity > b.severity;
  });
  const auto grave = std::count_if(notes.begin(), notes.end(), [](const store::Note& note) {
    return note.severity > store::Severity::kInfo;
  });
  const auto shown = page.options().all
                         ? notes.size()
                         : static_cast<std::size_t>(std::min<std::ptrdiff_t>(grave, at_most));
  page.title("data quality");
  int key_width = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    key_width = std::max(key_width, text::display_width(notes[i].code));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    page.entry(notes[i].code, key_width, note_text(notes[i]), ink_of(notes[i].severity));
  }
  if (shown == notes.size()) return;
  std::string rest;
  for (std::size_t i = shown; i < notes.size(); ++i) {
    rest += (rest.empty() ? "" : ", ") + notes[i].code;
  }
  page.paragraph(fmt::format("{}{} (--all explains)", shown > 0 ? "also " : "", rest), 2, 2,
                 Ink::kDim);
}

std::string shell_word(std::string_view path) {
  std::string safe = text::clean(path);
  const bool plain = std::all_of(safe.begin(), safe.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:=+@%,-").find(c) != std::string_view::npos;
  });
  if (plain && !safe.starts_with('-')) return safe;
  std::string out = "'";
  for (const char c : safe) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void add_next(Page& page, const Answer& answer, int at_most) {
  if (answer.path == "-") return;
  struct Step {
    std::string command;
    std::string_view gives;
  };
  std::vector<Step> next;
  const std::string path = shell_word(answer.path);
  const auto& budget = answer.evidence->budget;
  const bool idle = !budget.empty() && known::is_idle(budget.front().owner) &&
                    budget.front().owner != known::Owner::kGraph;
  if (idle) next.push_back({"culprit gaps " + path, "when the device waits, and for what"});
  next.push_back({"culprit kernels " + path, "every kernel, its bandwidth and its kind"});
  if (answer.evidence->attributed.source > 0) {
    next.push_back({"culprit sources " + path, "device time by line of code"});
  }
  if (!answer.evidence->known.model) {
    next.push_back({"culprit " + path + " --model CONFIG", "sizes held against the model"});
  }
  page.title("next");
  if (next.size() > static_cast<std::size_t>(at_most))
    next.resize(static_cast<std::size_t>(at_most));
  int widest = 0, remark = 0;
  for (const Step& step : next) {
    widest = std::max(widest, text::display_width(step.command));
    remark = std::max(remark, text::display_width(step.gives));
  }
  const bool fits = 2 + widest + 2 + remark <= page.options().width;
  for (const Step& step : next) {
    const std::string command = page.safe(step.command);
    // A command is copied, so it is never cut; the remark goes where there is no room for it.
    page.lines({"  " + (fits ? text::pad_right(command, widest) + "  " +
                                   paint(step.gives, Ink::kDim, page.options().color)
                             : command)});
  }
}

Page compose(const Answer& answer, const TextOptions& options, const Detail& detail,
             int paragraph_lines) {
  Page page(options);
  add_head(page, answer);
  add_headline(page, answer);
  page.limit_paragraphs(paragraph_lines);
  add_budget(page, answer, detail.budget_rows);
  add_ranks(page, answer, detail.budget_rows);
  if (answer.fleet) add_skipped(page, *answer.fleet, detail.notes);
  add_suspects(page, answer, static_cast<std::size_t>(detail.suspects));
  add_ruled_out(page, answer, static_cast<std::size_t>(detail.ruled_out));
  add_notes(page, answer, detail.notes);
  add_next(page, answer, detail.next);
  return page;
}

std::string refusal(const Answer& answer, const TextOptions& options) {
  Page page(options);
  const std::string what = answer.failure ? answer.failure->what : "it carries no verdict";
  page.paragraph(fmt::format("{}: no verdict: {}", answer.path, what), 0, 2);
  if (answer.failure) page.labelled("hint", answer.failure->hint);
  add_notes(page, answer, kEverything);
  return page.take();
}

}  // namespace

std::string render_text(const Answer& answer, const TextOptions& options) {
  if (!answer.usable()) return refusal(answer, options);
  if (options.all) return compose(answer, options, kAll, kEverything).take();
  Page page(options);
  for (const int paragraph_lines : kParagraphLines) {
    for (const Detail& detail : kDetails) {
      page = compose(answer, options, detail, paragraph_lines);
      if (page.size() <= kScreenLines) return page.take();
    }
  }
  return page.take();
}

}  // namespace culprit::report
