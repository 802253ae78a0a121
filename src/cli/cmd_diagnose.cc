// One run in, of one trace or of its ranks, one answer out: load -> build -> measure -> judge -> render. Whatever ends the work
// early still gives a JSON document where one was asked for, unless the command line was wrong.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/companions.h"
#include "cli/inputs.h"
#include "cli/output_file.h"
#include "cli/run_command.h"
#include "report/note_guide.h"
#include "report/report.h"
#include "run/mapping.h"

namespace culprit::cli {
namespace {

std::optional<report::Table> table_of(const Command& command) {
  for (int t = 0; t < report::kTables; ++t) {
    const auto table = static_cast<report::Table>(t);
    if (command.id == CommandId::kTable && report::table_name(table) == command.name) return table;
  }
  return std::nullopt;
}

Status check_page(const Settings& settings) {
  if (settings.html_file.empty() || report::can_render_html()) return Ok{};
  return Error{.code = Error::Code::kUnsupported,
               .what = "this culprit was built without the page of --html",
               .where = {},
               .hint = "install nodejs and npm (scripts/setup does), then build again",
               .note_code = {}};
}

Rendered render(const Settings& settings, const Console& console, const report::Answer& answer) {
  const std::optional<report::Table> table = table_of(*settings.command);
  const bool floor = settings.command->id == CommandId::kFloor && answer.usable();
  Rendered rendered;
  if (settings.json) {
    rendered.document = floor ? report::render_floor_json(*answer.floor, answer.path)
                              : report::render_json(answer, table);
  }
  if (!answer.usable()) return rendered;
  const report::TextOptions options = console.text_options();
  if (settings.markdown) rendered.markdown = report::render_markdown(answer, table, options);
  rendered.text = floor                ? report::render_floor(*answer.floor, options)
                  : table              ? report::render_table(answer, *table, options)
                  : answer.what_if     ? report::render_what_if(answer, options)
                  : answer.explanation ? report::render_explanation(answer, options)
                                       : report::render_text(answer, options);
  return rendered;
}

// The page, the document and Markdown to their files, one of them or the text to stdout.
Outcome deliver(const Settings& settings, Console& console, const report::Answer& answer) {
  if (!settings.html_file.empty()) {
    const Status written = write_answer_file(settings.html_file, report::render_html(answer));
    if (!written.ok()) return console.fail(written.error());
    console.stage_done("page");
  }
  return hand_over(settings, console, render(settings, console, answer));
}

// No verdict: the reason on stderr, and the document if one was asked for.
Outcome refuse(const Settings& settings, Console& console, report::Answer& answer,
               const Error& error) {
  const Outcome outcome = console.fail(error);
  const bool asked = settings.json || !settings.html_file.empty();
  if (error.code == Error::Code::kUsage || outcome == Outcome::kInterrupted || !asked) {
    return outcome;
  }
  answer.run = nullptr;
  answer.evidence = nullptr;
  answer.verdict = nullptr;
  answer.failure = error;
  if (console.redactor() != nullptr) console.redactor()->redact(answer, nullptr);
  deliver(settings, console, answer);
  return outcome;
}

// Damage of the input: a warning each, and under --strict the end.
Status weigh_damage(const Settings& settings, Console& console, const report::Answer& answer) {
  std::string codes, first;
  for (const store::Note& note : answer.notes.all()) {
    if (!report::is_damage(note)) continue;
    console.warn(note.message, note.code);
    codes += (codes.empty() ? "" : ", ") + note.code;
    if (first.empty()) first = note.code;
  }
  if (!settings.strict || codes.empty()) return Ok{};
  return Error{.code = Error::Code::kUnusable,
               .what = fmt::format("damaged, and refused by --strict: {}", codes),
               .where = answer.path,
               .hint = "without --strict the answer is given, with these notes",
               .note_code = first};
}

// Gains that are bounds say why.
void note_bounds(report::Answer& answer) {
  const std::string& off = answer.evidence->retimer->off();
  if (off.empty() || answer.verdict->suspects.empty()) return;
  const std::string what = "gains are bounds, not retimed steps: " + off;
  answer.notes.add({"retiming-off", store::Severity::kInfo, 1, {}, {}, "", what});
}

// What of the run's ranks cannot be told.
void note_ranks(report::Answer& answer) {
  const evidence::Ranks& ranks = answer.ranks;
  if (ranks.all.empty()) return;
  const auto given = static_cast<std::int64_t>(ranks.all.size());
  if (ranks.absent > 0) {
    answer.notes.add({"ranks-missing",
                      store::Severity::kInfo,
                      ranks.absent,
                      {},
                      {},
                      "",
                      fmt::format("{} of {} ranks are not in the input: one of them may be the one "
                                  "that is waited for",
                                  ranks.absent, given + ranks.absent)});
  }
  std::int64_t alone = 0;
  for (std::size_t r = 0; r < ranks.all.size(); ++r)
    if (!ranks.skew.known() || ranks.skew.ranks[r].meetings == 0) ++alone;
  if (alone > 0) {
    answer.notes.add({"ranks-unaligned",
                      store::Severity::kWarning,
                      alone,
                      {},
                      {},
                      "",
                      fmt::format("{} of {} ranks share no collective with the others whose ends "
                                  "would align the clocks: who waits for whom is not known of them",
                                  alone, given)});
  }
}

// What is asked beyond the verdict; the answer points into this. A floor is part of every answer that
// can have one.
struct Questions {
  std::optional<verdict::WhatIfAnswer> what_if;
  std::optional<verdict::Explanation> explanation;
  std::optional<evidence::StepFloor> floor;

  Status ask(const Settings& settings, const evidence::Evidence& evidence,
             const verdict::Verdict& verdict, report::Answer& answer) {
    if (settings.command->id == CommandId::kWhatIf) {
      TRY(what_if,
          verdict::what_if(evidence, verdict,
                           {settings.remove, settings.scale, settings.graph, settings.no_sync}));
      answer.what_if = &*what_if;
    }
    if (settings.command->id == CommandId::kExplain) {
      TRY(explanation, verdict::explain(evidence, verdict, {settings.kernel, settings.suspect}));
      answer.explanation = &*explanation;
    }
    return ask_floor(settings, evidence, answer);
  }

  Status ask_floor(const Settings& settings, const evidence::Evidence& evidence,
                   report::Answer& answer) {
    const bool tp_given = settings.tp.has_value() || !settings.server_info.empty();
    Result<evidence::StepFloor> found =
        evidence::floor_of_run(evidence, {settings.batch, settings.context, tp_given});
    if (found.ok()) {
      floor = *std::move(found);
      answer.floor = &*floor;
    } else if (settings.command->id == CommandId::kFloor) {
      return found.error();
    }
    return Ok{};
  }
};

void redact(Console& console, Questions& questions, run::Run& run, report::Answer& answer) {
  Redactor* const redactor = console.redactor();
  if (redactor == nullptr) return;
  redactor->redact(answer, &run);
  if (questions.floor) redactor->redact(*questions.floor);
}

}  // namespace

Outcome diagnose(const Settings& settings, Console& console) {
  report::Answer answer;
  answer.path = settings.words.front();

  for (const Status& writable : {check_outputs(settings), check_page(settings)})
    if (!writable.ok()) return console.fail(writable.error());
  Result<evidence::Knowledge> known = gather_knowledge(settings, console.redactor());
  if (!known.ok()) return console.fail(known.error());

  run::Options options = building(settings, *known);
  Result<Inputs> inputs = read_inputs(settings, console, *known, options, answer);
  console.stage_done("read");
  if (!inputs.ok()) return refuse(settings, console, answer, inputs.error());
  const store::Trace& trace = *inputs->run;
  answer.info = &trace.info;
  answer.notes.merge(trace.notes);

  run::Builder builder(trace, options.threads);
  answer.ranks = std::move(inputs->ranks);
  if (answer.ranks.all.empty())
    answer.ranks =
        evidence::compare_ranks(evidence::measure_devices(trace, builder, options, *known));
  Nanos waiting = 0;
  if (!answer.ranks.all.empty()) {
    const evidence::RankFigures& rank = answer.ranks.all[answer.ranks.headline];
    options.device = rank.index;
    waiting = rank.wait_ns_per_step;
  }
  Result<run::Run> run = std::move(builder).build(options);
  console.stage_done("build");
  if (!run.ok()) return refuse(settings, console, answer, run.error());
  const Status mapped = map_graphs(settings, console, answer.path, inputs->captures, *run);
  console.stage_done("map");
  if (!mapped.ok()) return refuse(settings, console, answer, mapped.error());
  answer.run = &*run;
  answer.notes.merge(run->notes);
  note_ranks(answer);
  const Status damage = weigh_damage(settings, console, answer);
  if (!damage.ok()) return refuse(settings, console, answer, damage.error());

  evidence::Evidence evidence = evidence::measure(*run, *std::move(known), waiting);
  if (!answer.ranks.all.empty()) evidence.ranks = &answer.ranks;
  answer.evidence = &evidence;
  console.stage_done("measure");

  const verdict::Verdict verdict = verdict::judge(evidence);
  answer.verdict = &verdict;
  note_bounds(answer);
  console.stage_done("judge");

  Questions questions;
  const Status asked = questions.ask(settings, evidence, verdict, answer);
  if (!asked.ok()) return refuse(settings, console, answer, asked.error());
  redact(console, questions, *run, answer);

  const Outcome outcome = deliver(settings, console, answer);
  console.stage_done("render");
  return outcome;
}

}  // namespace culprit::cli
