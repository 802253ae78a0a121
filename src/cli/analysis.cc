#include "cli/analysis.h"

#include <fmt/format.h>

#include <string>

#include "cli/companions.h"
#include "cli/run_command.h"
#include "report/note_guide.h"
#include "run/mapping.h"

namespace culprit::cli {

Analysis::Analysis(const Settings& settings, Console& console)
    : settings_(settings), console_(console) {
  answer.path = settings.words.front();
}

Status Analysis::gather() {
  TRY(known_, gather_knowledge(settings_, console_.redactor()));
  options_ = building(settings_, known_);
  return Ok{};
}

Status Analysis::read() {
  Result<Inputs> inputs = read_inputs(settings_, console_, known_, options_, answer);
  console_.stage_done("read");
  if (!inputs.ok()) return inputs.error();
  take(std::move(*inputs));
  return Ok{};
}

void Analysis::take(Inputs inputs) {
  inputs_ = std::move(inputs);
  answer.info = &trace().info;
  answer.notes.merge(trace().notes);
  builder_ = std::make_unique<run::Builder>(trace(), options_.threads);
  answer.ranks = std::move(inputs_.ranks);
  if (answer.ranks.all.empty())
    answer.ranks =
        evidence::compare_ranks(evidence::measure_devices(trace(), *builder_, options_, known_));
  if (!answer.ranks.all.empty()) {
    const evidence::RankFigures& rank = answer.ranks.all[answer.ranks.headline];
    options_.device = rank.index;
    waiting_ = rank.wait_ns_per_step;
  }
}

Status Analysis::build() {
  Result<run::Run> run = std::move(*builder_).build(options_);
  console_.stage_done("build");
  if (!run.ok()) return run.error();
  run_ = std::move(*run);
  const Status mapped = map_graphs(settings_, console_, answer.path, inputs_.captures, *run_);
  console_.stage_done("map");
  if (!mapped.ok()) return mapped.error();
  answer.run = &*run_;
  answer.notes.merge(run_->notes);
  note_ranks();
  return weigh_damage();
}

Status Analysis::judge() {
  evidence_ = evidence::measure(*run_, std::move(known_), waiting_);
  if (!answer.ranks.all.empty()) evidence_->ranks = &answer.ranks;
  answer.evidence = &*evidence_;
  console_.stage_done("measure");
  verdict_ = verdict::judge(*evidence_);
  answer.verdict = &*verdict_;
  note_bounds();
  console_.stage_done("judge");
  return Ok{};
}

void Analysis::redact() {
  if (console_.redactor() != nullptr) console_.redactor()->redact(answer, run_ ? &*run_ : nullptr);
}

// Damage of the input: a warning each, and under --strict the end.
Status Analysis::weigh_damage() {
  std::string codes, first;
  for (const store::Note& note : answer.notes.all()) {
    if (!report::is_damage(note)) continue;
    console_.warn(note.message, note.code);
    codes += (codes.empty() ? "" : ", ") + note.code;
    if (first.empty()) first = note.code;
  }
  if (!settings_.strict || codes.empty()) return Ok{};
  return Error{.code = Error::Code::kUnusable,
               .what = fmt::format("damaged, and refused by --strict: {}", codes),
               .where = answer.path,
               .hint = "without --strict the answer is given, with these notes",
               .note_code = first};
}

// Gains that are bounds say why.
void Analysis::note_bounds() {
  const std::string& off = answer.evidence->retimer->off();
  if (off.empty() || answer.verdict->suspects.empty()) return;
  const std::string what = "gains are bounds, not retimed steps: " + off;
  answer.notes.add({"retiming-off", store::Severity::kInfo, 1, {}, {}, "", what});
}

// What of the run's ranks cannot be told.
void Analysis::note_ranks() {
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

}  // namespace culprit::cli
