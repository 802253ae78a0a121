#include "report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/note_guide.h"
#include "report/page.h"
#include "report/table.h"
#include "report/views.h"
#include "report/words.h"

namespace culprit::report {

std::string markdown_text(std::string_view words) {
  constexpr std::string_view kMarkup = "\\`*_{}[]()#+-!|~";
  constexpr std::string_view kZeroWidth =
      "&#8203;";  // keeps GitHub from seeing a mention or a link
  const std::string safe = text::clean(words);
  std::string out;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    const std::string_view rest = std::string_view(safe).substr(i + 1);
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '$') {
      out += "&#36;";
    } else if (c == '@' || c == '#' || (c == ':' && rest.starts_with("//")) ||
               (c == '.' && safe.compare(i - std::min<std::size_t>(i, 3), 3, "www") == 0)) {
      out += (c == '#' ? "\\#" : std::string(1, c)) + std::string(kZeroWidth);
    } else {
      const bool special = kMarkup.find(c) != std::string_view::npos;
      const bool inside = (c == '-' || c == '+' || c == '!' || c == '(' || c == ')') && i > 0;
      if (special && !inside) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

namespace {

constexpr std::size_t kMostSuspects = 5, kMostRuledOut = 12, kMostNotes = 12;
constexpr int kBudgetRows = 8, kLongest = 600;  // columns of a sentence

std::string sentence(std::string_view words) {
  return markdown_text(text::shorten_middle(text::clean(words), kLongest, true));
}

std::string item(std::string_view label, std::string_view words) {
  if (words.empty()) return {};
  return fmt::format("   - {}: {}\n", label, sentence(words));
}

std::string folded(std::string_view title, const std::string& body) {
  return fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", title, body);
}

std::string place_text(const verdict::Suspect& suspect) {
  return suspect.where.empty() ? std::string() : short_place_of(suspect.where.front());
}

std::string suspect_markdown(const Page& page, const Answer& answer, std::size_t index) {
  const verdict::Suspect& suspect = answer.verdict->suspects[index];
  std::string out = fmt::format("{}. **{}**\n", index + 1, sentence(head_text(page, suspect)));
  out += item("claim", suspect.claim);
  out += item("at", place_text(suspect));
  if (suspect.tensor) out += item("tensor", tensor_text(*suspect.tensor, suspect.live_fraction));
  const std::string kernel = kernel_text(answer, suspect);
  if (!kernel.empty()) out += item("kernel", kernel + ": " + figures_text(page, answer, suspect));
  out += item("fix", suspect.fix);
  return out + item("disproved if", suspect.disproved_if);
}

// What each fix buys: the step run again with it, or the most that it can be.
std::string gains_markdown(const Page& page, const Answer& answer, std::size_t shown) {
  std::string rows;
  const auto add = [&](const std::string& what, const verdict::Gain& gain) {
    if (gain.step_now <= 0) return;
    const bool bound = gain.method == "bound";
    const std::string tokens =
        gain.tokens_per_s_after > 0 ? text::number(gain.tokens_per_s_after) : std::string("-");
    rows += markdown_row({what, (bound ? "≥ " : "") + page.duration(gain.expected),
                          (bound ? "at most " : "") + page.duration(gain.step_now - gain.expected),
                          tokens, markdown_text(bound_text(gain.bound_by_after))});
  };
  for (std::size_t i = 0; i < shown; ++i) {
    const verdict::Suspect& suspect = answer.verdict->suspects[i];
    add(markdown_text(suspect.id) + " gone", suspect.gain);
    for (const verdict::Remedy& remedy : suspect.remedies)
      add(markdown_text(remedy.name), remedy.gain);
  }
  if (rows.empty()) return {};
  return "\n" + markdown_row({"what if", "step", "saves", "tokens/s", "then bound by"}) +
         markdown_row({"---", "---:", "---:", "---:", "---"}) + rows;
}

std::string ruled_out_markdown(const Answer& answer, bool all) {
  const auto& ruled_out = answer.verdict->ruled_out;
  if (ruled_out.empty()) return {};
  const std::size_t shown = all ? ruled_out.size() : std::min(ruled_out.size(), kMostRuledOut);
  std::string body;
  for (std::size_t i = 0; i < shown; ++i)
    body += fmt::format("- **{}**: {}\n", sentence(ruled_out[i].hypothesis),
                        sentence(ruled_out[i].because));
  if (shown < ruled_out.size()) body += fmt::format("- {} more\n", ruled_out.size() - shown);
  return folded(fmt::format("{} ruled out", ruled_out.size()), body);
}

std::string notes_markdown(const Answer& answer, bool all) {
  const std::vector<store::Note> notes = all_notes(answer);
  if (notes.empty()) return {};
  const std::size_t shown = all ? notes.size() : std::min(notes.size(), kMostNotes);
  std::string body;
  for (std::size_t i = 0; i < shown; ++i)
    body += fmt::format("- {} ({}): {}\n", sentence(notes[i].code),
                        store::severity_name(notes[i].severity), sentence(note_text(notes[i])));
  if (shown < notes.size()) body += fmt::format("- {} more\n", notes.size() - shown);
  return folded(fmt::format("data quality: {} notes", notes.size()), body);
}

}  // namespace

std::string render_markdown(const Answer& answer, std::optional<Table> table,
                            const TextOptions& wanted) {
  TextOptions options = wanted;
  options.unicode = true;
  options.color = false;
  const std::string begin = fmt::format("{} -->\n", kMarkdownBegin);
  if (table) return begin + grid_markdown(make_table(answer, *table), options, kRowsShown);
  const Page page(options);
  const verdict::Verdict& verdict = *answer.verdict;
  std::string out = begin + "### " + sentence(verdict.headline) + "\n\n";
  if (!verdict.suspects.empty()) {
    const std::string place = place_text(verdict.suspects.front());
    if (!place.empty()) out += "at " + sentence(place) + "\n\n";
  }
  const std::string input = answer.path == "-" ? "standard input" : answer.path;
  out += fmt::format("- {}: {}\n- {}\n- {}\n\n", sentence(input), sentence(size_text(answer)),
                     sentence(steps_text(page, answer)), sentence(device_text(answer)));
  out += grid_markdown(budget_grid(answer), options, kBudgetRows);
  const std::size_t shown =
      options.all ? verdict.suspects.size() : std::min(verdict.suspects.size(), kMostSuspects);
  if (shown > 0) out += "\n";
  for (std::size_t i = 0; i < shown; ++i) out += suspect_markdown(page, answer, i);
  if (shown < verdict.suspects.size())
    out += fmt::format("\n{} more suspects\n", verdict.suspects.size() - shown);
  out += gains_markdown(page, answer, shown);
  return out + ruled_out_markdown(answer, options.all) + notes_markdown(answer, options.all);
}

}  // namespace culprit::report
