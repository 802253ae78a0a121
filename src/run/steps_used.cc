// Which steps count: those of the main kind that are complete and no outliers, or those that the
// user named. What is left out is said, with the reason, in the step and in a note.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/median.h"
#include "run/chapters.h"

namespace culprit::run {
namespace {

using store::Severity;

void place_activities(Run& run) {
  std::size_t next = 0;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    Step& step = run.steps[s];
    while (next < run.activities.size() && run.activities[next].begin < step.begin) ++next;
    step.first = static_cast<std::int64_t>(next);
    // The whole trace is one closed span; the end of any other last step lies behind its
    // activities' begins as well, unless one has no duration.
    const bool last = s + 1 == run.steps.size();
    while (next < run.activities.size() && (run.activities[next].begin < step.end ||
                                            (last && run.activities[next].begin == step.end &&
                                             run.activities[next].end == step.end)))
      run.activities[next++].step = static_cast<StepIndex>(s);
    step.last = static_cast<std::int64_t>(next);
  }
}

StepKind main_kind(const Run& run) {
  constexpr int kKinds = static_cast<int>(StepKind::kIdle) + 1;
  std::array<std::int64_t, kKinds> steps{};
  std::array<Nanos, kKinds> time{};
  for (const Step& s : run.steps) {
    if (s.kind == StepKind::kDecode) return StepKind::kDecode;
    ++steps[static_cast<std::size_t>(s.kind)];
    time[static_cast<std::size_t>(s.kind)] += s.length();
  }
  std::size_t best = 0;
  for (std::size_t k = 1; k < steps.size(); ++k) {
    if (k == static_cast<std::size_t>(StepKind::kIdle) && steps[best] > 0) continue;
    if (std::pair{steps[k], time[k]} > std::pair{steps[best], time[best]}) best = k;
  }
  return static_cast<StepKind>(best);
}

using StepList = std::vector<std::size_t>;  // indices into run.steps

// Steps of the main kind by batch size: only equal work is compared.
std::vector<StepList> classes_of(const Run& run) {
  std::vector<StepList> classes;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    if (run.steps[s].kind != run.kind) continue;
    const auto alike = std::find_if(classes.begin(), classes.end(), [&](const StepList& c) {
      return run.steps[c.front()].batch == run.steps[s].batch;
    });
    if (alike == classes.end())
      classes.push_back({s});
    else
      alike->push_back(s);
  }
  return classes;
}

std::int64_t activities_of(const Run& run, const StepLaunches& launches, std::size_t s) {
  return launches.launched.empty() ? run.steps[s].last - run.steps[s].first : launches.launched[s];
}

bool at_an_end(const Run& run, std::size_t s) { return s == 0 || s + 1 == run.steps.size(); }

// Steps whose work is the same by nature; prompts differ in length.
bool comparable(const Run& run) {
  return run.kind != StepKind::kPrefill && run.kind != StepKind::kMixed;
}

bool clearly_less(std::int64_t count, std::int64_t usual) { return count * 10 < usual * 9; }

// The fewest activities of whole steps in the middle, where there are some to go by.
std::int64_t fewest_inside(const StepList& steps, const std::vector<std::int64_t>& counts,
                           std::int64_t usual, const StepLaunches& launches, const Run& run) {
  constexpr int kEnough = 3;
  int inside = 0;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (at_an_end(run, steps[i]) || launches.missing[steps[i]] > 0) continue;
    if (clearly_less(counts[i], usual)) continue;
    ++inside;
    fewest = std::min(fewest, counts[i]);
  }
  return inside >= kEnough ? fewest : 0;
}

// A step with clearly less work than its like, or with launches whose kernels were dropped, was
// not recorded whole. At the ends of the recording that is normal, and a few kernels less tell it:
// those that began before the recording are dropped.
void exclude_incomplete(const StepList& steps, const StepLaunches& launches, Run& run) {
  std::vector<std::int64_t> counts;
  for (const auto s : steps) counts.push_back(activities_of(run, launches, s));
  const std::int64_t usual = upper_median(counts);
  const std::int64_t fewest =
      comparable(run) ? fewest_inside(steps, counts, usual, launches, run) : 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t s = steps[i];
    const bool cut_off = at_an_end(run, s) && counts[i] < fewest;
    if (launches.missing[s] == 0 && !clearly_less(counts[i], usual) && !cut_off) continue;
    run.steps[s].why_excluded = at_an_end(run, s) ? "partial" : "incomplete";
  }
}

// Half as long again as the median, and by far more than the spread: a stall, not a step like the
// others. Where more than a quarter of the steps is that long it is a second regime, and counts.
void exclude_outliers(const StepList& steps, Run& run) {
  constexpr std::size_t kFewest = 4;
  constexpr Nanos kSpreads = 15;  // median absolute deviations: ten sigma for normal noise
  std::vector<Nanos> lengths, deviations;
  StepList kept;
  for (const auto s : steps)
    if (run.steps[s].why_excluded.empty()) kept.push_back(s);
  if (kept.size() < kFewest) return;
  for (const auto s : kept) lengths.push_back(run.steps[s].length());
  const Nanos median = upper_median(lengths);
  for (const Nanos length : lengths) deviations.push_back(std::abs(length - median));
  const Nanos spread = upper_median(deviations);
  const auto far = [&](Nanos length) {
    return length - median > median / 2 && (length - median) / kSpreads > spread;
  };
  const auto many = std::count_if(lengths.begin(), lengths.end(), far);
  if (static_cast<std::size_t>(many) * 4 > kept.size()) return;
  for (const auto s : kept)
    if (far(run.steps[s].length())) run.steps[s].why_excluded = "outlier";
}

Status select(const Options& options, Run& run) {
  const auto [from, to] = *options.steps;
  std::int64_t of_kind = 0;
  for (Step& step : run.steps) {
    if (step.kind != run.kind) continue;
    const bool chosen = from <= of_kind && of_kind <= to;
    step.why_excluded = chosen ? "" : "not-selected";
    ++of_kind;
  }
  if (from < 0 || from > to || to >= of_kind)
    return Error{Error::Code::kUsage,
                 fmt::format("--steps {}..{}: the trace has {} ({}), counted from 0", from, to,
                             counted(of_kind, "step", "steps"), step_kind_name(run.kind)),
                 "", fmt::format("choose within 0..{}", of_kind - 1), ""};
  return Ok{};
}

void exclude(const StepLaunches& launches, Run& run) {
  for (const StepList& steps : classes_of(run)) {
    exclude_incomplete(steps, launches, run);
    if (comparable(run)) exclude_outliers(steps, run);
  }
  const bool none_left = std::none_of(run.steps.begin(), run.steps.end(), [&](const Step& s) {
    return s.kind == run.kind && s.why_excluded.empty();
  });
  if (!none_left) return;
  for (Step& step : run.steps)  // all alike incomplete: the note on missing kernels says so
    if (step.kind == run.kind) step.why_excluded.clear();
}

void note_excluded(Run& run, std::string_view code, std::string_view why_a, std::string_view why_b,
                   Severity severity, std::string_view what) {
  std::int64_t count = 0;
  std::string where;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    if (run.steps[s].why_excluded != why_a && run.steps[s].why_excluded != why_b) continue;
    if (++count <= 8) where += fmt::format("{}{}", where.empty() ? "steps " : ", ", s);
    if (count == 9) where += ", ...";
  }
  if (count > 0)
    add_note(run, std::string(code), severity, count,
             counted(count, "step", "steps") + " left out of the means: " + std::string(what),
             where);
}

void note_steps(Run& run) {
  note_excluded(run, "partial-step", "partial", "incomplete", Severity::kInfo,
                "recorded in part only");
  note_excluded(run, "outlier-step", "outlier", "outlier", Severity::kWarning,
                "far longer than the median step");
  constexpr std::int64_t kFew = 3;
  const auto used =
      std::count_if(run.steps.begin(), run.steps.end(), [](const Step& s) { return s.used; });
  if (used < kFew && run.how != StepsHow::kWholeTrace)
    add_note(run, "too-few-steps", Severity::kWarning, 1,
             "only " + counted(used, "step", "steps") +
                 " used: how much steps vary is unknown; record 5 or more");
}

}  // namespace

Status choose_steps(const Options& options, Run& run, const Links& links, StepLaunches& launches) {
  place_activities(run);
  find_missing(run, links, launches);
  infer_kinds(run, links);
  run.kind = options.kind.value_or(main_kind(run));
  for (Step& step : run.steps)
    if (step.kind != run.kind) step.why_excluded = "other-kind";
  if (options.steps) {
    TRY([[maybe_unused]] const Ok selected, select(options, run));
  } else if (!run.trace->info.slice) {  // there somebody chose the steps
    exclude(launches, run);
  }
  for (Step& step : run.steps) {
    const bool other = options.batch && step.batch != options.batch;
    if (step.why_excluded.empty() && other) step.why_excluded = "other-batch";
  }
  for (Step& step : run.steps) step.used = step.why_excluded.empty();
  note_steps(run);
  return Ok{};
}

}  // namespace culprit::run
