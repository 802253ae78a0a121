// Many traces in, one answer out: join -> find -> summarize, each process its share -> merge -> the answer
// about the rank that the others wait for, as diagnose gives it. Only the first process speaks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/companions.h"
#include "cli/fleet_work.h"
#include "cli/run_command.h"
#include "fleet/database.h"
#include "fleet/merge.h"
#include "ranks/place.h"

namespace culprit::cli {
namespace {

constexpr const char* kDefaultFolder = "culprit-fleet";

report::FleetFigures figures_of(const FleetWork& work, const fleet::Merged& merged) {
  report::FleetFigures figures;
  figures.traces = std::ssize(work.traces());
  for (const fleet::TraceFile& trace : work.traces()) figures.bytes += trace.bytes;
  for (const fleet::Skipped& skipped : merged.skipped)
    figures.skipped.push_back({work.traces()[skipped.file].path, skipped.code, skipped.why});
  figures.captures = std::ssize(merged.captures);
  figures.collectives = merged.calls;
  figures.related = merged.related;
  return figures;
}

// What the answer leaves out, as notes of their own.
void note_fleet(const report::FleetFigures& fleet, store::Notes& notes) {
  if (!fleet.skipped.empty()) {
    const auto count = std::ssize(fleet.skipped);
    const report::FleetFigures::Skipped& first = fleet.skipped.front();
    notes.add({"trace-skipped",
               store::Severity::kDataLoss,
               count,
               {},
               {},
               "",
               fmt::format("{} of {} traces left out: {}: {}{}", text::count(count),
                           text::count(fleet.traces), first.path, first.why,
                           count > 1 ? "; the others are listed" : "")});
  }
  if (fleet.related < fleet.collectives) {
    notes.add(
        {"ranks-sampled",
         store::Severity::kInfo,
         fleet.collectives - fleet.related,
         {},
         {},
         "",
         fmt::format("who waits for whom is told from {} of {} collectives, those of the first "
                     "steps: summaries keep no more",
                     text::count(fleet.related), text::count(fleet.collectives))});
  }
}

// Captures may lend to the rank's graph kernels: its own, or those whose name tells no rank.
Result<std::vector<Companion>> read_captures(const Settings& settings, Console& console,
                                             const FleetWork& work, const fleet::Merged& merged,
                                             std::optional<std::int64_t> rank) {
  constexpr std::size_t kMost = 16;
  std::vector<Companion> captures;
  for (const std::size_t t : merged.captures) {
    const std::string& path = work.traces()[t].path;
    const std::optional<std::int64_t> named = rank_in_name(path);
    if (captures.size() == kMost || (named && rank && *named != *rank)) continue;
    TRY(auto trace, load_trace(path, settings, console));
    captures.push_back({std::move(trace), "argument"});
  }
  return captures;
}

// The rank that the answer is about is read once more.
Result<Inputs> headline_of(const Settings& settings, Console& console, const FleetWork& work,
                           fleet::Merged& merged, report::Answer& answer) {
  Inputs inputs;
  inputs.ranks = std::move(merged.ranks);
  const evidence::Ranks& ranks = inputs.ranks;
  const std::size_t file = ranks.all.empty() ? 0 : ranks.all[ranks.headline].file;
  const fleet::Used& shown = merged.used[file];
  answer.path = work.traces()[shown.file].path;
  for (std::size_t u = 0; u < merged.used.size(); ++u)
    if (u != file) answer.notes.merge(merged.used[u].notes);
  for (const evidence::RankFigures& rank : ranks.all) {
    fleet::Used& used = merged.used[rank.file];
    answer.inputs.push_back({work.traces()[used.file].path, std::move(used.info), used.rank});
  }
  note_fleet(*answer.fleet, answer.notes);
  TRY(inputs.captures, read_captures(settings, console, work, merged, shown.rank));
  TRY(inputs.run, load_trace(answer.path, settings, console));
  return inputs;
}

Outcome answer_about(const Settings& settings, Console& console, const FleetWork& work) {
  Analysis analysis(settings, console);
  report::Answer& answer = analysis.answer;
  answer.fleet.emplace();
  answer.fleet->traces = std::ssize(work.traces());
  const auto show = [&console](std::string_view doing) {
    return [&console, doing](std::size_t done, std::size_t of) {
      console.show_progress(
          fmt::format("{}: {} %", doing, 100 * done / std::max<std::size_t>(1, of)));
    };
  };
  Result<fleet::Merged> merged = fleet::merge(
      work.shelf(), work.traces(), fleet::most_held(work.traces()), show("merging summaries"));
  console.stage_done("merge");
  if (!merged.ok()) return refuse(settings, console, answer, merged.error());
  answer.fleet = figures_of(work, *merged);
  const Status written =
      fleet::write_database(settings.output + "/fleet.sqlite", work.shelf(), work.traces(), *merged,
                            show("writing the database"));
  console.stage_done("database");
  if (!written.ok()) return console.fail(written.error());
  if (merged->used.empty()) {
    return refuse(settings, console, answer, fleet::no_rank(work.traces(), *merged));
  }
  Result<Inputs> inputs = headline_of(settings, console, work, *merged, answer);
  console.stage_done("read");
  if (!inputs.ok()) return refuse(settings, console, answer, inputs.error());
  const Status known = analysis.gather();
  if (!known.ok()) return console.fail(known.error());
  analysis.take(std::move(*inputs));
  return conclude(settings, console, analysis);
}

}  // namespace

Outcome fleet(const Settings& given, Console&) {
  Settings settings = given;
  if (settings.output.empty()) settings.output = kDefaultFolder;
  // mpirun gives its first process a terminal of its own, and what comes out of it to whatever it has.
  if (started_by_launcher() && settings.color == term::ColorWhen::kAuto)
    settings.color = term::ColorWhen::kNever;
  Console console(settings);
  Result<std::unique_ptr<Ranks>> ranks = join_fleet();
  if (!ranks.ok()) return console.fail(ranks.error());
  const bool speaks = *ranks == nullptr || (*ranks)->rank() == 0;
  FleetWork work(settings, console, ranks->get());
  const auto work_out = [&]() -> Status {
    TRY([[maybe_unused]] const Ok writable, agreed(ranks->get(), check_outputs(settings)));
    TRY([[maybe_unused]] const Ok found, work.find());
    return work.summarize();
  };
  const Status done = work_out();
  ranks->reset();  // the others go; what is left is not for them
  if (!speaks) return done.ok() ? Outcome::kAnswered : Outcome::kNotAnswered;
  if (!done.ok()) return console.fail(done.error());
  console.stage_done("summarize");
  if (!settings.quiet && work.reused() > 0)
    console.say(fmt::format("culprit: {} of {} traces were summarized before: {}/summaries\n",
                            text::count(work.reused()), text::count(std::ssize(work.traces())),
                            settings.output));
  return answer_about(settings, console, work);
}

}  // namespace culprit::cli
