// Report: an Answer rendered as text, JSON or a page. Pure functions: no I/O, no clock, no environment. The
// words for people live here; figures come from Evidence and Verdict only.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "compare/compare.h"
#include "evidence/floor.h"
#include "evidence/ranks.h"
#include "verdict/explain.h"
#include "verdict/verdict.h"
#include "verdict/what_if.h"

namespace culprit::report {

// One of several files, each of a rank.
struct InputFile {
  std::string path;  // as the user gave it, or found in the folder they gave
  store::TraceInfo info;
  std::optional<std::int64_t> rank;
};

// Traces that were summarized by `culprit fleet`: what of them is behind the answer.
struct FleetFigures {
  struct Skipped {
    std::string path, code, why;
  };
  std::int64_t traces = 0, bytes = 0;         // all that were found
  std::vector<Skipped> skipped;               // no rank of the run, or not to be read
  std::int64_t captures = 0;                  // recordings of graph captures, which are set aside
  std::int64_t collectives = 0, related = 0;  // of all ranks; those that were held side by side
};

// Everything that was found out about one input. Pointers are null where the work ended earlier
// (unusable input), and `failure` then says why.
struct Answer {
  std::string
      path;  // as the user gave it; "-" is standard input; of several that of the rank shown
  std::vector<InputFile> inputs = {};  // of several ranks, in their order; empty for one file
  const store::TraceInfo* info = nullptr;
  store::Notes notes;  // of reading and of building the run
  const run::Run* run = nullptr;
  const evidence::Evidence* evidence = nullptr;
  const verdict::Verdict* verdict = nullptr;
  const verdict::WhatIfAnswer* what_if = nullptr;     // of the command whatif
  const verdict::Explanation* explanation = nullptr;  // of the command explain
  const evidence::StepFloor* floor = nullptr;         // where model, GPU, batch and ranks are known
  evidence::Ranks ranks = {};                         // where the input holds several
  std::optional<FleetFigures> fleet = {};             // of the command fleet
  std::optional<Error> failure = {};
  bool usable() const { return run != nullptr && evidence != nullptr && verdict != nullptr; }
};

using text::TimeUnit;
struct TextOptions {
  int width = 80;
  bool color = false;
  bool unicode = false;  // bars and arrows; else ASCII
  bool all = false;      // every row
  TimeUnit unit = TimeUnit::kAuto;
};

// The tables of the commands steps, budget, kernels, layers, ops, sources, gaps, comm, memory.
enum class Table : std::uint8_t {
  kSteps,
  kBudget,
  kKernels,
  kLayers,
  kOps,
  kSources,
  kGaps,
  kComm,
  kMemory
};
inline constexpr int kTables = static_cast<int>(Table::kMemory) + 1;

// The one-screen verdict: at most 40 lines unless `all`; every line at most `width` columns.
std::string render_text(const Answer& answer, const TextOptions& options);

// The same for a pull request or an issue, as GitHub reads Markdown: verdict, budget, suspects, what
// their fixes buy, and folded who is ruled out and what the input lacks. With `table` that table. Fits
// a comment (65,536 characters), unless `all`.
std::string render_markdown(const Answer& answer, std::optional<Table> table,
                            const TextOptions& options);
// What every Markdown of ours begins with.
inline constexpr std::string_view kMarkdownBegin = "<!-- culprit";

// The answer of the command whatif: what changes, the step before and after, what bounds it.
std::string render_what_if(const Answer& answer, const TextOptions& options);

// The answer of the command explain: a block per kernel.
std::string render_explanation(const Answer& answer, const TextOptions& options);
// The answer of the command floor; `trace` is the path of the trace it is held against, or empty.
std::string render_floor(const evidence::StepFloor& answer, const TextOptions& options);
std::string render_floor_json(const evidence::StepFloor& answer, std::string_view trace);

std::string_view table_name(Table table);  // "steps"
// The longest rows first, 20 unless `all`. Empty where the answer is not usable.
std::string render_table(const Answer& answer, Table table, const TextOptions& options);

// How much of an answer a document holds; as it stands, all. Of kernels and facts the first, of a text
// longer than `text` bytes both ends.
struct JsonLimits {
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  std::size_t kernels = kAll, kernels_of_suspect = kAll, facts = kAll, text = kAll;
};
// The whole document, pretty, newline at the end; also for input that is not usable. With `table`,
// a member "table" holds that table's rows, all of them.
std::string render_json(const Answer& answer, std::optional<Table> table = std::nullopt,
                        const JsonLimits& limits = {});

// One file with everything in it: the --json document, the drawing of a step (drawing.h) and the
// page that shows them. Opens from disk, asks no network. At most 3 MB: of answers above 1 MB kernels,
// facts and the middle of long names are left out, of the step what is shortest.
bool can_render_html();  // false: built without node, so there is no page
std::string render_html(const Answer& answer);
// What every such file begins with.
inline constexpr std::string_view kHtmlBegin =
    "<!doctype html><html lang=\"en\" data-culprit=\"1\">";

// The answer of the command compare: verdict, budget, kernels, causes, what is ruled out. As text (one
// screen), as JSON (docs/schema/compare.schema.json), and as Markdown for a pull request. `gate`: the
// share above which the user's gate fails.
std::string render_comparison(const compare::Comparisons& pairs, std::optional<double> gate,
                              const TextOptions& options);
std::string render_comparison_json(const compare::Comparisons& pairs, std::optional<double> gate);
std::string render_comparison_markdown(const compare::Comparisons& pairs,
                                       std::optional<double> gate);
bool gate_fails(const compare::Comparisons& pairs, std::optional<double> gate);
// One sentence: how much, significant or not, because of what.
std::string comparison_headline(const compare::Comparison& comparison);

// The note that stands for a failure in an answer: severity unusable, code Error::note_code or, in
// its absence, "cannot-read" or "unsupported".
store::Note note_of(const Error& error);

}  // namespace culprit::report
