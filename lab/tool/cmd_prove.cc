// `culprit lab prove`: the tool's predictions held against what fixes measure on this machine. Per
// pair and run: the fault is recorded, the detective reads the trace blind, the fault and its fix run in
// turns without a recorder, and the fixed run's trace must accuse nobody.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "base/text.h"
#include "lab/tool/commands.h"
#include "lab/tool/decoding.h"
#include "lab/tool/model.h"
#include "lab/tool/prove_report.h"
#include "lab/tool/recording.h"
#include "lab/tool/times.h"

namespace culprit::lab {
namespace {

constexpr std::string_view kTrace = "decode.trace.json";
constexpr std::int64_t kWarmUp = 3, kRecorded = 30;              // steps
constexpr int kRounds = 6;                                       // before and after in turns
constexpr std::int64_t kMostPerRound = 12, kFewestPerRound = 4;  // steps
constexpr Nanos kRound = 400'000'000;
constexpr int kMostRecordings = 3;
constexpr int kMostTries = 3;
constexpr double kSteady = 0.03;
constexpr double kAgree = 0.02;  // of a recording's steps with the same steps unrecorded

// One side of a pair, as its command line says.
struct Side {
  std::string line;
  Options options;
  Workload workload;
  const Weights* weights = nullptr;  // null: several ranks, each a process with weights of its own
};

Result<Side> side_of(const std::string& line) {
  std::vector<std::string> words{"bench"};
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  const std::vector<std::string_view> views(words.begin(), words.end());
  TRY(Options options, parse(views));
  const Workload workload{
      .reading = options.readings.size() == 1 ? options.readings.front() : Reading::kFused,
      .batch = options.batch.front(),
      .context = options.context.front(),
      .steps = kWarmUp + std::max(kRounds * kMostPerRound, kRecorded) + 2};
  return Side{line, std::move(options), workload, nullptr};
}

// What of a side's steps is measured.
class Sample {
 public:
  Sample(Measure measure, std::int64_t batch) : measure_(measure), batch_(batch) {}
  void add(const TimedStep& step) {
    all_ += step.time;
    if (step.prefills) return;
    ++decodes_;
    if (measure_ != Measure::kLargest || step.batch > batch_) times_.add(step.time);
  }
  Nanos step() const {
    if (measure_ != Measure::kMean) return times_.median();
    return decodes_ > 0 ? all_ / decodes_ : 0;
  }

 private:
  Measure measure_;
  std::int64_t batch_, decodes_ = 0;
  Nanos all_ = 0;
  Times times_;
};

class Prover {
 public:
  Prover(const Options& options, Screen& screen, std::size_t runs)
      : options_(options), screen_(screen), runs_(runs) {}

  Result<Proof> prove(const Pair& pair, std::uint64_t seed) {
    Proof proof;
    proof.pair = &pair;
    proof.lines = drawn(pair, options_.tiny, seed);
    TRY(Side before, side_of(proof.lines.before));
    TRY(Side after, side_of(proof.lines.after));
    LoadedModel model;
    if (before.options.ranks == 1) {
      say(pair, "making the model");
      TRY([[maybe_unused]] const Ok loaded, load_model(before.options, model));
      before.weights = after.weights = model.weights;
    }
    TRY([[maybe_unused]] const Ok tried, try_until_steady(before, after, proof));
    TRY([[maybe_unused]] const Ok healed, judge_after(after, proof));
    ++done_;
    return proof;
  }

 private:
  // Recording and measurement are taken again where the fault's step is not the same in both: then the
  // machine was not. After several tries the one in which it was most alike counts.
  Status try_until_steady(const Side& before, const Side& after, Proof& proof) {
    std::optional<Proof> best;
    for (int tries = 1; tries <= most(kMostTries) && (!best || best->drift() > kSteady); ++tries) {
      Proof next = proof;
      next.tries = tries;
      TRY([[maybe_unused]] const Ok judged, judge_before(before, next));
      TRY([[maybe_unused]] const Ok measured, measure(before, after, next));
      if (!best || next.drift() < best->drift()) best = std::move(next);
    }
    proof = *std::move(best);
    return Ok{};
  }

  int most(int tries) const { return options_.tiny ? 1 : tries; }  // where times say nothing

  void say(const Pair& pair, std::string_view what) {
    const Nanos passed = Launcher::now() - start_;
    const Nanos each = done_ > 0 ? passed / static_cast<Nanos>(done_) : 0;
    const std::string left =
        done_ > 0
            ? fmt::format(", about {} left",
                          text::duration(
                              std::max<Nanos>(0, each * static_cast<Nanos>(runs_) - passed), true))
            : std::string();
    screen_.progress(fmt::format("{} of {}: {}, {}{}", done_ + 1, runs_, pair.name, what, left));
  }

  // The machine as a run on so many threads has it.
  Result<profile::Device> device(const Options& side) {
    const auto known = devices_.find(side.threads);
    if (known != devices_.end()) return known->second;
    TRY(profile::Device made, this_machine(side, screen_));
    return devices_.emplace(side.threads, std::move(made)).first->second;
  }

  // The time of a window's steps, behind its warm-up; of ranks, their median step. Recorded to the
  // folder or not.
  Result<Nanos> window(const Pair& pair, const Side& side, const Folder& folder, bool recorded,
                       std::string_view what) {
    say(pair, what);
    if (side.weights == nullptr)
      return bench_step(folder, side.line, recorded ? kTrace : "", kWarmUp, kRecorded);
    std::optional<Recording> recording;
    if (recorded) {
      TRY(const profile::Device on, device(side.options));
      TRY(Recording begun,
          Recording::of(fmt::format("{}/{}", folder.path(), kTrace), kWarmUp, kRecorded, on));
      recording.emplace(std::move(begun));
    }
    TRY(const auto decoding, Decoding::make(side.options, *side.weights, nullptr, side.workload));
    Nanos all = 0;
    for (std::int64_t i = 0; i < kWarmUp + kRecorded; ++i) {
      const TimedStep step = decoding->step();
      if (i >= kWarmUp) all += step.time;
      say(pair, what);
    }
    if (!recording) return all;
    TRY([[maybe_unused]] const std::string table, recording->end());
    return all;
  }

  // A window of the side's steps as a trace in a folder of its own. It is taken again where the same
  // steps took another time unrecorded, right before: then something else had the machine in one of
  // the two. After several tries the one that agreed best counts.
  Result<Folder> record(const Pair& pair, const Side& side, std::string_view what, int& tries) {
    std::optional<Folder> best;
    double least = 0;
    for (tries = 1;; ++tries) {
      TRY(Folder folder, Folder::make());
      TRY(const Nanos plain, window(pair, side, folder, false, what));
      TRY(const Nanos recorded, window(pair, side, folder, true, what));
      const double apart = std::abs(static_cast<double>(recorded) / static_cast<double>(plain) - 1);
      if (!best || apart < least) {
        best.emplace(std::move(folder));
        least = apart;
      }
      if (least <= kAgree || tries == most(kMostRecordings)) return *std::move(best);
    }
  }

  // Of ranks, the folder of their traces.
  static std::string_view trace_of(const Side& side) {
    return side.weights == nullptr ? "." : kTrace;
  }

  Status judge_before(const Side& side, Proof& proof) {
    const Pair& pair = *proof.pair;
    TRY(const Folder folder, record(pair, side, "recording the fault", proof.recordings));
    TRY(const Finding finding, diagnose(folder, trace_of(side), pair.option));
    // What is measured is the median, unless stalls are the matter.
    const bool median = pair.measure == Measure::kMedian;
    const Nanos off = median ? finding.median - finding.step : 0;
    proof.recorded = finding.step + off;
    if (pair.suspects.empty()) return judge_nobody(folder, finding, off, proof);
    if (finding.suspects.empty()) return Ok{};
    const Accusation& first = finding.suspects.front();
    proof.named = first.id;
    proof.confidence = first.confidence;
    proof.named_right = is_right(pair, first.id);
    proof.recorded = first.now + off;
    proof.predicted = first.after + off +
                      static_cast<Nanos>(pair.left * static_cast<double>(first.now - first.after));
    return Ok{};
  }

  // No fault: the largest owner is to be the one that the change is about, if it is about one.
  static Status judge_nobody(const Folder& folder, const Finding& finding, Nanos off,
                             Proof& proof) {
    for (const Accusation& each : finding.suspects)
      if (proof.named.empty() && stands(each)) proof.named = each.id;
    const std::string_view owner = proof.pair->owner;
    proof.named_right = proof.named.empty() && (owner.empty() || finding.owner == owner);
    proof.predicted = proof.recorded;
    if (owner.empty() || finding.owner_kernel.empty()) return Ok{};
    TRY(const Nanos expected, what_if(folder, kTrace, finding.owner_kernel, proof.pair->scale));
    proof.predicted = expected + off;
    return Ok{};
  }

  static bool is_right(const Pair& pair, const std::string& id) {
    return std::find(pair.suspects.begin(), pair.suspects.end(), id) != pair.suspects.end();
  }
  static bool stands(const Accusation& accusation) {
    return accusation.verdict == "culprit" && accusation.confidence != "possible";
  }

  // In turns, so that what else the machine does falls on both.
  Status measure(const Side& before, const Side& after, Proof& proof) {
    if (before.weights == nullptr) return measure_ranks(before, after, proof);
    TRY(const auto slow, Decoding::make(before.options, *before.weights, nullptr, before.workload));
    TRY(const auto fast, Decoding::make(after.options, *after.weights, nullptr, after.workload));
    Sample slow_steps(proof.pair->measure, before.workload.batch),
        fast_steps(proof.pair->measure, after.workload.batch);
    for (std::int64_t i = 0; i < kWarmUp; ++i) {
      static_cast<void>(slow->step());
      static_cast<void>(fast->step());
    }
    for (int round = 0; round < kRounds; ++round) {
      say(*proof.pair, "measuring");
      take(*slow, slow_steps);
      take(*fast, fast_steps);
    }
    proof.before = slow_steps.step();
    proof.measured = fast_steps.step();
    return Ok{};
  }

  // The same, a run of processes per turn: the medians of their medians.
  Status measure_ranks(const Side& before, const Side& after, Proof& proof) {
    constexpr int kTurns = 3;
    TRY(const Folder folder, Folder::make());
    Times slow, fast;
    for (int turn = 0; turn < kTurns; ++turn) {
      TRY(const Nanos with_fault, window(*proof.pair, before, folder, false, "measuring"));
      TRY(const Nanos without, window(*proof.pair, after, folder, false, "measuring"));
      slow.add(with_fault);
      fast.add(without);
    }
    proof.before = slow.median();
    proof.measured = fast.median();
    return Ok{};
  }

  static void take(Decoding& decoding, Sample& sample) {
    const Nanos start = Launcher::now();
    for (std::int64_t i = 0; i < kMostPerRound; ++i) {
      if (i >= kFewestPerRound && Launcher::now() - start > kRound) return;
      sample.add(decoding.step());
    }
  }

  Status judge_after(const Side& side, Proof& proof) {
    int tries = 0;
    TRY(const Folder folder, record(*proof.pair, side, "recording the fix", tries));
    TRY(const Finding finding, diagnose(folder, trace_of(side), {}));
    for (const Accusation& each : finding.suspects) {
      const bool planted =
          proof.pair->left == 0 && is_right(*proof.pair, each.id) && each.verdict != "minor";
      if (planted || (proof.pair->left == 0 && stands(each)))
        proof.accused_after.push_back(each.id);
    }
    proof.healthy_after = proof.accused_after.empty();
    return Ok{};
  }

  const Options& options_;
  Screen& screen_;
  std::map<int, profile::Device> devices_;  // by threads; 0: all
  std::size_t runs_, done_ = 0;
  Nanos start_ = Launcher::now();
};

std::string list() {
  std::vector<std::vector<std::string>> rows;
  for (const Pair& pair : pairs()) rows.push_back({std::string(pair.name), std::string(pair.what)});
  return table(rows, 2) + "\n`culprit lab prove NAME...`, or --all\n";
}

}  // namespace

Result<bool> prove(const Options& options, Screen& screen) {
  std::vector<const Pair*> chosen;
  for (const std::string& name : options.names) {
    TRY(const Pair* pair, pair_named(name));
    chosen.push_back(pair);
  }
  if (options.all)
    for (const Pair& pair : pairs()) chosen.push_back(&pair);
  if (chosen.empty()) {
    TRY([[maybe_unused]] const Ok listed, screen.answer(list(), "[]\n"));
    return true;
  }
  Prover prover(options, screen, chosen.size() * static_cast<std::size_t>(options.runs));
  std::uint64_t seed = options.seeded ? options.seed : std::random_device{}() % 1'000'000;
  std::vector<Proof> proofs;
  for (const Pair* pair : chosen)
    for (std::int64_t run = 0; run < options.runs; ++run) {
      TRY(Proof proof, prover.prove(*pair, seed++));
      TRY([[maybe_unused]] const Ok told, screen.part(proof_text(proof) + "\n"));
      proofs.push_back(std::move(proof));
    }
  TRY([[maybe_unused]] const Ok said,
      screen.answer(prove_text(proofs, options.tiny), prove_json(proofs, options.tiny)));
  return summary_of(proofs).named == proofs.size();
}

Status list_faults(const Options&, Screen& screen) {
  std::vector<std::vector<std::string>> rows;
  for (const FaultRow& row : fault_rows())
    rows.push_back(
        {row.unit.empty() ? std::string(row.name) : fmt::format("{}={}", row.name, row.unit),
         std::string(row.what)});
  return screen.answer(table(rows, 2), {});
}

}  // namespace culprit::lab
