// One run in, of one trace or of its ranks, one answer out: load -> build -> measure -> judge -> render. Whatever ends the work
// early still gives a JSON document where one was asked for, unless the command line was wrong.
#include <string>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/run_command.h"
#include "report/report.h"

namespace culprit::cli {
namespace {

std::optional<report::Table> table_of(const Command& command) {
  for (int t = 0; t < report::kTables; ++t) {
    const auto table = static_cast<report::Table>(t);
    if (command.id == CommandId::kTable && report::table_name(table) == command.name) return table;
  }
  return std::nullopt;
}

Rendered render(const Settings& settings, const Console& console, const report::Answer& answer) {
  const std::optional<report::Table> table = table_of(*settings.command);
  const bool floor = settings.command->id == CommandId::kFloor && answer.usable();
  Rendered rendered;
  if (settings.json || !kept_document(settings).empty()) {
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

}  // namespace

Outcome refuse(const Settings& settings, Console& console, report::Answer& answer,
               const Error& error) {
  const Outcome outcome = console.fail(error);
  const bool asked =
      settings.json || !settings.html_file.empty() || !kept_document(settings).empty();
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

Outcome diagnose(const Settings& settings, Console& console) {
  const Status writable = check_outputs(settings);
  if (!writable.ok()) return console.fail(writable.error());
  Analysis analysis(settings, console);
  const Status known = analysis.gather();
  if (!known.ok()) return console.fail(known.error());
  const Status read = analysis.read();
  if (!read.ok()) return refuse(settings, console, analysis.answer, read.error());
  return conclude(settings, console, analysis);
}

Outcome conclude(const Settings& settings, Console& console, Analysis& analysis) {
  report::Answer& answer = analysis.answer;
  for (const auto stage : {&Analysis::build, &Analysis::judge}) {
    const Status done = (analysis.*stage)();
    if (!done.ok()) return refuse(settings, console, answer, done.error());
  }
  Questions questions;
  const Status asked = questions.ask(settings, *answer.evidence, *answer.verdict, answer);
  if (!asked.ok()) return refuse(settings, console, answer, asked.error());
  analysis.redact();
  if (console.redactor() != nullptr && questions.floor)
    console.redactor()->redact(*questions.floor);

  const Outcome outcome = deliver(settings, console, answer);
  console.stage_done("render");
  return outcome;
}

}  // namespace culprit::cli
