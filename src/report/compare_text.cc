// The answer of `culprit compare` for people: a screen of text, or Markdown for a pull request.
#include <fmt/format.h>

#include <algorithm>

#include "report/compare_words.h"
#include "report/markdown.h"
#include "report/page.h"
#include "report/views.h"

namespace culprit::report {
namespace {

using compare::Cause;
using compare::Comparison;
using compare::Comparisons;
using compare::Outcome;

constexpr std::size_t kScreenLines = 40;

struct Detail {
  int budget_rows, kernels, causes, ruled_out, notes;
};
constexpr Detail kAll{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20};
constexpr Detail kDetails[] = {{10, 8, 4, 8, 4}, {9, 8, 3, 5, 3}, {8, 7, 2, 4, 2}, {7, 6, 2, 3, 1},
                               {7, 6, 1, 3, 1},  {6, 5, 1, 2, 1}, {5, 4, 1, 2, 1}, {4, 3, 1, 1, 1}};
constexpr int kParagraphLines[] = {4, 3, 2, 1};

Ink ink_of(const Comparison& c) {
  return c.outcome == Outcome::kSlower   ? Ink::kRed
         : c.outcome == Outcome::kFaster ? Ink::kGreen
                                         : Ink::kBold;
}

void add_sides(Page& page, const Comparisons& pairs) {
  const Comparison& c = pairs.main();
  if (pairs.all.size() > 1) {
    page.paragraph(
        fmt::format("{} ranks on both sides; the rest is about {}, whose own time moved most",
                    pairs.all.size(), pairs.all[pairs.headline].name),
        0, 2);
  }
  for (const auto& [side, word] : {std::pair(&c.before, "before"), std::pair(&c.after, "after")}) {
    constexpr int kKeyWidth = 6;
    page.entry(word, kKeyWidth,
               page.drop_folders(side->path, page.options().width - kKeyWidth - 4));
    page.paragraph(side_text(*side), kKeyWidth + 4, kKeyWidth + 4);
  }
}

void add_gate(Page& page, const Comparisons& pairs, std::optional<double> gate) {
  if (!gate) return;
  const bool fails = gate_fails(pairs, gate);
  page.labelled("gate", fmt::format("{}: more than {} slower fails", fails ? "FAILED" : "passed",
                                    *gate > 0 ? text::percent(*gate) : std::string("0 %")));
}

const Cause* first_cause(const Comparison& c) {
  const bool moved = c.outcome == Outcome::kSlower || c.outcome == Outcome::kFaster;
  for (const Cause& cause : c.causes)
    if (!moved || cause.beside_steps || (cause.exposed > 0) == (c.delta > 0)) return &cause;
  return nullptr;
}

void add_headline(Page& page, const Comparisons& pairs, std::optional<double> gate) {
  const Comparison& c = pairs.main();
  page.paragraph(comparison_headline(c), 0, 0, ink_of(c));
  if (const Cause* cause = first_cause(c)) {
    if (!cause->where.empty()) page.place(cause->where.front());
    if (cause->exposed > 0) page.labelled("do", cause->fix);
  }
  add_gate(page, pairs, gate);
}

void add_cause(Page& page, const Comparison& c, std::size_t index) {
  const Cause& cause = c.causes[index];
  const bool slower = cause.exposed > 0;
  page.paragraph(cause_head(cause, index), 0, 3, slower ? Ink::kYellow : Ink::kGreen);
  page.paragraph(cause.claim, 3, 3);
  if (cause.tensor && !cause.tensor->shape.empty())
    page.labelled("tensor", fmt::format("{} {}: {} elements", cause.tensor->name,
                                        shape_text(cause.tensor->shape),
                                        text::count(cause.tensor->elements)));
  const bool said = first_cause(c) == &cause;
  if (!said && !cause.where.empty()) page.place(cause.where.front());
  if (!said && slower) page.labelled("fix", cause.fix);
  if (page.options().all) {
    for (const std::string& other : cause.alternatives) page.labelled("or", other);
    page.labelled("facts", fmt::format("{}", fmt::join(cause.facts, " ")));
  }
  page.paragraph("Disproved if " + cause.disproved_if, 3, 3);
}

void add_causes(Page& page, const Comparison& c, int at_most) {
  if (c.causes.empty()) return;
  page.blank();
  const auto shown = std::min(c.causes.size(), static_cast<std::size_t>(at_most));
  for (std::size_t i = 0; i < shown; ++i) add_cause(page, c, i);
  if (shown < c.causes.size())
    page.paragraph(fmt::format("{} more causes: --all", c.causes.size() - shown), 0, 0, Ink::kDim);
}

void add_ruled_out(Page& page, const Comparison& c, int at_most) {
  if (c.ruled_out.empty()) return;
  page.title("ruled out");
  int key_width = 0;
  for (const auto& ruled : c.ruled_out)
    key_width = std::max(key_width, text::display_width(ruled.hypothesis));
  const auto shown = std::min(c.ruled_out.size(), static_cast<std::size_t>(at_most));
  for (std::size_t i = 0; i < shown; ++i)
    page.entry(c.ruled_out[i].hypothesis, key_width, c.ruled_out[i].because);
  if (shown < c.ruled_out.size())
    page.paragraph(fmt::format("{} more: --all", c.ruled_out.size() - shown), 2, 2, Ink::kDim);
}

void add_notes(Page& page, const Comparison& c, int at_most) {
  std::vector<store::Note> notes = notes_of(c);
  if (!page.options().all) {
    notes.erase(std::remove_if(notes.begin(), notes.end(),
                               [](const store::Note& note) {
                                 return note.severity == store::Severity::kInfo;
                               }),
                notes.end());
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {  // what both sides have is said once
    const auto twin =
        std::find_if(notes.begin() + static_cast<std::ptrdiff_t>(i) + 1, notes.end(),
                     [&](const store::Note& other) { return other.code == notes[i].code; });
    if (twin == notes.end()) continue;
    notes[i].where = "both sides";
    notes.erase(twin);
  }
  if (notes.empty()) return;
  std::stable_sort(notes.begin(), notes.end(), [](const store::Note& a, const store::Note& b) {
    return a.severity > b.severity;
  });
  page.title("data quality");
  int key_width = 0;
  for (const store::Note& note : notes)
    key_width = std::max(key_width, text::display_width(note.code));
  const auto shown = std::min(notes.size(), static_cast<std::size_t>(at_most));
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string where = notes[i].where.empty() ? std::string() : " (" + notes[i].where + ")";
    page.entry(notes[i].code, key_width, notes[i].message + where, Ink::kYellow);
  }
  if (shown < notes.size())
    page.paragraph(fmt::format("{} more: --all", notes.size() - shown), 2, 2, Ink::kDim);
}

void add_kernels(Page& page, const Comparison& c, int rows) {
  const Grid grid = kernel_delta_grid(c, page.options().all);
  page.blank();
  if (grid.rows.empty()) {
    page.paragraph(fmt::format("kernels: all {} take as long on both sides", c.kernels.size()), 0,
                   0);
    return;
  }
  page.lines(grid_lines(grid, page.options(), rows));
}

Page compose(const Comparisons& pairs, std::optional<double> gate, const TextOptions& options,
             const Detail& detail, int paragraph_lines) {
  const Comparison& c = pairs.main();
  Page page(options);
  add_headline(page, pairs, gate);
  page.blank();
  add_sides(page, pairs);
  if (pairs.all.size() > 1) {
    page.blank();
    page.lines(grid_lines(rank_delta_grid(pairs), options, detail.budget_rows));
  }
  page.limit_paragraphs(paragraph_lines);
  page.blank();
  page.lines(grid_lines(budget_delta_grid(c), options, detail.budget_rows));
  add_kernels(page, c, detail.kernels);
  add_causes(page, c, detail.causes);
  add_ruled_out(page, c, detail.ruled_out);
  add_notes(page, c, detail.notes);
  return page;
}

std::string budget_markdown(const Comparison& c) {
  std::string out = markdown_row({"where a step goes", "before", "after", "difference"}) +
                    "|---|---:|---:|---:|\n";
  constexpr std::size_t kRows = 10;
  for (std::size_t i = 0; i < std::min(kRows, c.budget.size()); ++i) {
    const compare::BudgetDelta& row = c.budget[i];
    out +=
        markdown_row({std::string(known::owner_name(row.owner)), text::duration(row.before, true),
                      text::duration(row.after, true), signed_duration(row.delta())});
  }
  if (c.budget.size() > kRows) {
    Nanos before = 0, after = 0;
    for (std::size_t i = kRows; i < c.budget.size(); ++i) {
      before += c.budget[i].before;
      after += c.budget[i].after;
    }
    out += markdown_row({fmt::format("{} other owners", c.budget.size() - kRows),
                         text::duration(before, true), text::duration(after, true),
                         signed_duration(after - before)});
  }
  return out + markdown_row({"**total = step**", text::duration(c.before.steps.mean, true),
                             text::duration(c.after.steps.mean, true), signed_duration(c.delta)});
}

std::string kernels_markdown(const Comparison& c) {
  constexpr std::size_t kRows = 20;
  std::string rows;
  std::size_t shown = 0, moved = 0;
  for (const compare::KernelChange& kernel : c.kernels) {
    if (kernel.change == compare::Change::kSame || ++moved > kRows) continue;
    ++shown;
    const auto side = [](const std::optional<compare::KernelSide>& of) {
      return of ? fmt::format("{} x {}", text::amount(of->calls_per_step),
                              text::duration(of->avg_ns, true))
                : std::string("-");
    };
    rows += markdown_row({signed_duration(kernel.delta()),
                          std::string(compare::change_name(kernel.change)), side(kernel.before),
                          side(kernel.after), markdown_text(kernel_text(kernel))});
  }
  if (shown == 0) return {};
  std::string out = fmt::format("<details><summary>{} kernels changed</summary>\n\n", moved) +
                    markdown_row({"difference", "change", "before", "after", "kernel"}) +
                    "|---:|---|---:|---:|---|\n" + rows;
  if (moved > shown) out += fmt::format("\n{} more: `culprit compare --all`\n", moved - shown);
  return out + "\n</details>\n";
}

}  // namespace

std::string render_comparison(const Comparisons& pairs, std::optional<double> gate,
                              const TextOptions& options) {
  if (options.all) return compose(pairs, gate, options, kAll, 1 << 20).take();
  Page page(options);
  for (const int paragraph_lines : kParagraphLines) {
    for (const Detail& detail : kDetails) {
      page = compose(pairs, gate, options, detail, paragraph_lines);
      if (page.size() <= kScreenLines) return page.take();
    }
  }
  return page.take();
}

std::string render_comparison_markdown(const Comparisons& pairs, std::optional<double> gate) {
  const Comparison& c = pairs.main();
  std::string out =
      fmt::format("<!-- culprit compare -->\n### {}\n\n", markdown_text(comparison_headline(c)));
  if (gate) {
    out += fmt::format("Gate {}: more than {} slower fails.\n\n",
                       gate_fails(pairs, gate) ? "**failed**" : "passed",
                       *gate > 0 ? text::percent(*gate) : std::string("0 %"));
  }
  for (const auto& [side, word] : {std::pair(&c.before, "before"), std::pair(&c.after, "after")})
    out += fmt::format("- {}: {}: {}\n", word, markdown_text(side->path),
                       markdown_text(side_text(*side)));
  if (pairs.all.size() > 1) {
    out += "\n" + markdown_row({"rank", "before", "after", "difference", "of it comm", "verdict"}) +
           "|---|---:|---:|---:|---:|---|\n";
    for (const compare::Ranked& rank : pairs.all) {
      const Comparison& of = rank.comparison;
      out += markdown_row({markdown_text(rank.name), text::duration(of.before.steps.mean, true),
                           text::duration(of.after.steps.mean, true), signed_duration(of.delta),
                           signed_duration(compare::communication_delta(of)),
                           std::string(compare::outcome_name(of.outcome))});
    }
  }
  out += "\n" + budget_markdown(c);
  if (!c.causes.empty()) out += "\n";
  for (const Cause& cause : c.causes)
    out += fmt::format("- **{}** ({}, {}): {}{}\n", cause.id, signed_duration(cause.exposed),
                       verdict::confidence_name(cause.confidence), markdown_text(cause.claim),
                       cause.exposed > 0 ? ". Fix: " + markdown_text(cause.fix) : std::string());
  const std::string kernels = kernels_markdown(c);
  if (!kernels.empty()) out += "\n" + kernels;
  return out;
}

}  // namespace culprit::report
