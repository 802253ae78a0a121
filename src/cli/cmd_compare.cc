// Two recordings in, what moved between them out. Each pair: load both -> build -> match the steps ->
// measure -> judge -> compare. Folders hold the ranks of a run, compared pair by pair: two traces are in
// memory at a time, whatever the number of ranks.
#include "compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/companions.h"
#include "cli/input.h"
#include "cli/run_command.h"
#include "evidence/ranks.h"
#include "report/note_guide.h"
#include "report/report.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

// One side of a pair, as far as its steps are known.
struct Recording {
  explicit Recording(std::string its) : path(std::move(its)) {}
  std::string path;
  std::unique_ptr<store::Trace> trace;
  std::vector<Companion> lenders;
  std::unique_ptr<run::Builder> builder;
  evidence::Ranks ranks;
  run::Options options;
  std::optional<run::Run> run;
};

Error located(Error error, const std::string& path) {
  if (error.where.empty()) error.where = path;
  return error;
}

// Of a file with several devices the one that an answer would be about, or the one with the name of
// the other side's.
std::size_t device_of(const evidence::Ranks& own, const evidence::Ranks* other) {
  if (other != nullptr && !other->all.empty()) {
    const evidence::RankFigures& wanted = other->all[other->headline];
    for (const evidence::RankFigures& rank : own.all)
      if (rank.label == wanted.label && rank.device == wanted.device) return rank.index;
  }
  return own.all[own.headline].index;
}

Status load(const Settings& settings, Console& console, const evidence::Knowledge& known,
            const evidence::Ranks* other, Recording& side) {
  TRY(side.trace, load_trace(side.path, settings, console));
  side.options = building(settings, known);
  side.builder = std::make_unique<run::Builder>(*side.trace, settings.threads);
  side.ranks = evidence::compare_ranks(
      evidence::measure_devices(*side.trace, *side.builder, side.options, known));
  if (!side.ranks.all.empty()) side.options.device = device_of(side.ranks, other);
  Result<run::Run> run = side.builder->build(side.options);
  if (!run.ok()) return located(run.error(), side.path);
  side.run = *std::move(run);
  return Ok{};
}

// Builds again where other steps must count than the run's own choice.
Status choose(const compare::Matching& matching, Recording& side) {
  side.options.kind = matching.kind;
  side.options.batch = matching.batch;
  const bool as_it_is =
      std::all_of(side.run->steps.begin(), side.run->steps.end(), [&](const run::Step& step) {
        return !step.used || !matching.batch || step.batch == matching.batch;
      });
  if (as_it_is && (!matching.kind || side.run->kind == *matching.kind)) return Ok{};
  TRY(side.run, side.builder->build(side.options));
  return Ok{};
}

Status weigh_damage(const Settings& settings, Console& console, const Recording& side) {
  std::string codes;
  store::Notes notes = side.trace->notes;
  notes.merge(side.run->notes);
  for (const store::Note& note : notes.all()) {
    if (!report::is_damage(note)) continue;
    console.warn(fmt::format("{}: {}", side.path, note.message), note.code);
    codes += (codes.empty() ? "" : ", ") + note.code;
  }
  if (!settings.strict || codes.empty()) return Ok{};
  return Error{.code = Error::Code::kUnusable,
               .what = fmt::format("damaged, and refused by --strict: {}", codes),
               .where = side.path,
               .hint = "without --strict the answer is given, with these notes",
               .note_code = codes.substr(0, codes.find(','))};
}

struct Judged {
  evidence::Evidence evidence;
  verdict::Verdict verdict;
};

Judged judge(const evidence::Knowledge& known, const run::Run& run) {
  Judged judged;
  judged.evidence = evidence::measure(run, known);
  judged.verdict = verdict::judge(judged.evidence);
  return judged;
}

Status same_rank(const Recording& before, const Recording& after) {
  const auto &a = before.trace->info.rank, &b = after.trace->info.rank;
  if (!a || !b || *a == *b) return Ok{};
  return Error{
      .code = Error::Code::kUsage,
      .what = fmt::format("rank {} would be compared with rank {} ({})", *a, *b, after.path),
      .where = before.path,
      .hint = "name the files of both folders alike, so that they pair by name",
      .note_code = {}};
}

Result<compare::Comparison> compare_pair(const Settings& settings, Console& console,
                                         const evidence::Knowledge& known,
                                         const std::string& path_before,
                                         const std::string& path_after, bool of_folders) {
  Recording before(path_before), after(path_after);
  TRY([[maybe_unused]] const Ok loaded, load(settings, console, known, nullptr, before));
  TRY([[maybe_unused]] const Ok loaded_too, load(settings, console, known, &before.ranks, after));
  console.stage_done("read");
  if (of_folders) {
    TRY([[maybe_unused]] const Ok alike, same_rank(before, after));
  }
  const compare::Matching matching = compare::match_steps(*before.run, *after.run);
  if (!matching.why_not.empty()) return compare::refuse(path_before, path_after, matching.why_not);
  for (Recording* side : {&before, &after}) {
    TRY([[maybe_unused]] const Ok chosen, choose(matching, *side));
    TRY([[maybe_unused]] const Ok mapped,
        map_graphs(settings, console, side->path, side->lenders, *side->run));
    TRY([[maybe_unused]] const Ok sound, weigh_damage(settings, console, *side));
  }
  console.stage_done("build");
  const Judged judged_before = judge(known, *before.run), judged_after = judge(known, *after.run);
  console.stage_done("judge");
  compare::Options options;
  if (settings.fail_above)
    options.least_share = std::min(options.least_share, *settings.fail_above);
  compare::Comparison comparison = compare::compare(
      {*before.run, judged_before.evidence, judged_before.verdict, path_before},
      {*after.run, judged_after.evidence, judged_after.verdict, path_after}, options);
  console.stage_done("compare");
  return comparison;
}

struct FilePair {
  std::string before, after, name;
};

// Files of equal names; else, with as many files on both sides, in order.
Result<std::vector<FilePair>> pair_files(const Settings& settings) {
  TRY(const std::vector<std::string> before, find_traces(settings.words[0]));
  TRY(const std::vector<std::string> after, find_traces(settings.words[1]));
  if (before.size() != after.size()) {
    return Error{.code = Error::Code::kUsage,
                 .what = fmt::format("{} traces before, {} after: ranks cannot be paired",
                                     before.size(), after.size()),
                 .where = settings.words[before.size() > after.size() ? 1 : 0],
                 .hint = "give two files, or two folders with a trace of every rank",
                 .note_code = {}};
  }
  std::vector<FilePair> pairs;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string name =
        before.size() > 1 ? fs::path(before[i]).filename().string() : std::string();
    pairs.push_back({before[i], after[i], name});
  }
  return pairs;
}

std::string name_of(const compare::Comparison& comparison, const std::string& file) {
  const auto& rank = comparison.before.rank;
  return !file.empty() && rank ? fmt::format("rank {}", *rank) : file;
}

Outcome deliver(const Settings& settings, Console& console, compare::Comparisons pairs) {
  if (console.redactor() != nullptr) console.redactor()->redact(pairs);
  Rendered rendered;
  if (settings.json) rendered.document = report::render_comparison_json(pairs, settings.fail_above);
  if (pairs.main().outcome != compare::Outcome::kNotComparable) {
    if (settings.markdown)
      rendered.markdown = report::render_comparison_markdown(pairs, settings.fail_above);
    rendered.text = report::render_comparison(pairs, settings.fail_above, console.text_options());
  }
  const Outcome outcome = hand_over(settings, console, rendered);
  console.stage_done("render");
  return outcome;
}

// No answer: the reason on stderr, and the document where one was asked for.
Outcome refuse(const Settings& settings, Console& console, const Error& error) {
  const Outcome outcome = console.fail(error);
  if (error.code == Error::Code::kUsage || outcome == Outcome::kInterrupted || !settings.json)
    return outcome;
  compare::Comparison refused = compare::refuse(settings.words[0], settings.words[1], error.what);
  refused.notes.add(report::note_of(error));
  deliver(settings, console, {.all = {{{}, std::move(refused)}}, .headline = 0});
  return outcome;
}

Result<compare::Comparisons> compare_all(const Settings& settings, Console& console) {
  TRY(const evidence::Knowledge known, gather_knowledge(settings, console.redactor()));
  TRY(const std::vector<FilePair> files, pair_files(settings));
  compare::Comparisons pairs;
  for (const FilePair& file : files) {
    TRY(compare::Comparison comparison,
        compare_pair(settings, console, known, file.before, file.after, files.size() > 1));
    pairs.all.push_back({name_of(comparison, file.name), std::move(comparison)});
  }
  pairs.headline = compare::find_headline(pairs.all);
  return pairs;
}

}  // namespace

Outcome compare(const Settings& settings, Console& console) {
  const Status writable = check_outputs(settings);
  if (!writable.ok()) return console.fail(writable.error());
  const Result<compare::Comparisons> pairs = compare_all(settings, console);
  if (!pairs.ok()) return refuse(settings, console, pairs.error());
  const compare::Comparison& main = pairs->main();
  if (main.outcome == compare::Outcome::kNotComparable) {
    return refuse(settings, console,
                  {.code = Error::Code::kUnusable,
                   .what = main.why_not,
                   .where = main.after.path,
                   .hint = "record the same kind of step on both sides",
                   .note_code = "kinds-differ"});
  }
  const Outcome outcome = deliver(settings, console, *pairs);
  const bool failed =
      outcome == Outcome::kAnswered && report::gate_fails(*pairs, settings.fail_above);
  return failed ? Outcome::kGateFailed : outcome;
}

}  // namespace culprit::cli
