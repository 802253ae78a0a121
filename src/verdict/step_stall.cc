// step-stall: rare steps that stand still on the host: a compilation, a garbage collection, the
// allocator. Public cases: vllm-project/vllm-ascend#14324 (compiled again for a new shape),
// sgl-project/sglang#9241 (garbage collection).
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::Outlier;

std::string fix_of(const std::string& cause) {
  if (cause == "compile") {
    return "compile before serving: warm up with every batch size and length, mark varying sizes "
           "as "
           "dynamic";
  }
  if (cause == "gc") return "freeze what start-up made (gc.freeze) and collect between requests";
  if (cause == "allocator")
    return "allocate before serving; keep the caching allocator from trimming";
  return "look at what else runs on the host then: garbage collection, the system, another process";
}

// Index of the step among those of its kind, as `culprit steps` counts.
std::int64_t place_of(const run::Run& run, run::StepIndex step) {
  std::int64_t place = 0;
  for (run::StepIndex i = 0; i < step; ++i) {
    if (run.steps[static_cast<std::size_t>(i)].kind == run.kind) ++place;
  }
  return place;
}

void examine(Evidence& evidence, Verdict& verdict) {
  if (evidence.outliers.empty() || evidence.steps.used == 0) return;
  Nanos excess = 0;
  for (const Outlier& outlier : evidence.outliers) excess += outlier.excess;
  const auto worst =
      std::max_element(evidence.outliers.begin(), evidence.outliers.end(),
                       [](const Outlier& a, const Outlier& b) { return a.excess < b.excess; });
  const auto count = static_cast<std::int64_t>(evidence.outliers.size());
  const std::int64_t steps = evidence.steps.used + count;
  Suspect suspect;
  suspect.id = "step-stall";
  suspect.cause = worst->cause;
  suspect.confidence = worst->cause == "unknown" ? Confidence::kLikely : Confidence::kCertain;
  suspect.ns_per_step = suspect.exposed_ns_per_step = excess / steps;
  suspect.claim = fmt::format(
      "{} of {} steps stood still: step {} for {} longer than the median of {}{}", count, steps,
      place_of(*evidence.run, worst->step), text::duration(worst->excess, true),
      text::duration(evidence.steps.median, true),
      worst->because.empty() ? "; the host made no call that would tell why"
                             : fmt::format(", in {} ({})", worst->because, worst->cause));
  suspect.facts = {
      fact_named(evidence, "steps.mean_ns"),
      evidence.add("stall.excess_ns", static_cast<double>(excess), "ns",
                   "length of the outlier steps above the median", own_query("stall.excess_ns")),
      evidence.add(
          "stall.steps", static_cast<double>(count), "1", "steps far above the median",
          evidence::sql_query("SELECT count(*) FROM steps WHERE why_excluded = 'outlier'"))};
  suspect.disproved_if = "the stall is gone in a recording that starts after a longer warm-up";
  suspect.fix = fix_of(worst->cause);
  const Nanos all =
      evidence.steps.mean * evidence.steps.used + excess + count * evidence.steps.median;
  suspect.share = all > 0 ? static_cast<double>(excess) / static_cast<double>(all) : 0;
  // The means leave these steps out: a fix changes the tail, not the mean step.
  suspect.gain = interruption_gain(evidence, suspect.exposed_ns_per_step);
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kStepStall{
    {"step-stall", "steps far longer than the median, with the device idle",
     "several steps; Python frames or calls name the cause", "it is gone after a longer warm-up"},
    examine};

}  // namespace culprit::verdict
