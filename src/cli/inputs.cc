#include "cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/usage.h"
#include "cli/input.h"
#include "ingest/ingest.h"
#include "run/mapping.h"

namespace culprit::cli {
namespace {

Result<std::vector<std::string>> given_traces(const Settings& settings) {
  std::vector<std::string> paths;
  for (const std::string& word : settings.words) {
    TRY(std::vector<std::string> found, find_traces(word));
    for (std::string& path : found) paths.push_back(std::move(path));
  }
  if (paths.size() > run::kMostCompared)
    return usage(fmt::format("{} traces given; {} ranks at most are held against each other",
                             paths.size(), run::kMostCompared),
                 "`culprit fleet DIR` takes any number; or give the ranks of one group");
  return paths;
}

// Ranks as they are read: each trace becomes figures, and goes.
class RankReader {
 public:
  RankReader(const evidence::Knowledge& known, const run::Options& options)
      : known_(known), options_(options) {}

  void add(std::unique_ptr<store::Trace> trace, const std::string& path) {
    const run::Builder builder(*trace, options_.threads);
    evidence::RankFigures rank = evidence::measure_rank(*trace, builder, options_, known_);
    if (!rank.rank) rank.rank = rank_in_name(path);
    rank.file = paths_.size();
    figures_.push_back(std::move(rank));
    files_.push_back({path, trace->info, figures_.back().rank});
    notes_.push_back(trace->notes);
    paths_.push_back(path);
    if (path == "-") piped_ = std::move(trace);  // cannot be read twice
  }

  Result<Inputs> finish(const Settings& settings, Console& console, std::vector<Companion> captures,
                        report::Answer& answer) {
    const Status same = evidence::check_same_run(figures_, paths_);
    if (!same.ok()) return same.error();
    Inputs inputs;
    inputs.captures = std::move(captures);
    inputs.ranks = evidence::compare_ranks(std::move(figures_));
    const std::size_t file = inputs.ranks.all[inputs.ranks.headline].file;
    answer.path = paths_[file];
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (i != file) answer.notes.merge(notes_[i]);
    for (const evidence::RankFigures& rank : inputs.ranks.all)
      answer.inputs.push_back(files_[rank.file]);
    if (answer.path == "-") {
      inputs.run = std::move(piped_);
    } else {
      TRY(inputs.run, load_trace(answer.path, settings, console));
    }
    return inputs;
  }

 private:
  const evidence::Knowledge& known_;
  run::Options options_;
  std::vector<evidence::RankFigures> figures_;
  std::vector<report::InputFile> files_;
  std::vector<store::Notes> notes_;
  std::vector<std::string> paths_;
  std::unique_ptr<store::Trace> piped_;
};

}  // namespace

Result<Inputs> read_inputs(const Settings& settings, Console& console,
                           const evidence::Knowledge& known, const run::Options& options,
                           report::Answer& answer) {
  TRY(const std::vector<std::string> paths, given_traces(settings));
  std::vector<Companion> captures;
  RankReader ranks(known, options);
  // The first run waits for a second one: alone it is the answer's trace as it stands.
  std::unique_ptr<store::Trace> first;
  std::size_t runs = 0;
  answer.path = paths.front();
  for (const std::string& path : paths) {
    TRY(auto trace, load_trace(path, settings, console));
    if (paths.size() > 1 && run::is_capture_trace(*trace)) {
      captures.push_back({std::move(trace), "argument"});
      continue;
    }
    if (++runs == 1) {
      first = std::move(trace);
      answer.path = path;
      continue;
    }
    if (runs == 2) ranks.add(std::move(first), answer.path);
    ranks.add(std::move(trace), path);
  }
  if (runs == 0)
    return usage(fmt::format("{} traces of graph captures given, and none of a run", paths.size()),
                 "add the trace of the run itself");
  if (runs > 1) return ranks.finish(settings, console, std::move(captures), answer);
  Inputs inputs;
  inputs.run = std::move(first);
  inputs.captures = std::move(captures);
  return inputs;
}

}  // namespace culprit::cli
