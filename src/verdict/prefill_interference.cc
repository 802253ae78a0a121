// prefill-interference: prefill between the decode steps of running requests; every stream waits for
// it. Public cases: sgl-project/sglang#35300, pegainfer-project/pegainfer#368.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using run::StepKind;

constexpr double kLeastShare = 0.05;

struct Interference {
  std::int64_t decodes = 0, prefills = 0;
  Nanos decode = 0, prefill = 0;  // in all, between the first and the last decode step
  Nanos worst = 0;                // longest run of prefill in front of a decode step
};

Interference find(const run::Run& run) {
  Interference found;
  Nanos before_next = 0;
  std::int64_t count_before_next = 0;
  for (const run::Step& step : run.steps) {
    if (step.kind == StepKind::kDecode) {
      if (found.decodes > 0) {
        found.prefill += before_next;
        found.prefills += count_before_next;
        found.worst = std::max(found.worst, before_next);
      }
      before_next = 0;
      count_before_next = 0;
      ++found.decodes;
      found.decode += step.length();
    } else if (step.kind == StepKind::kPrefill || step.kind == StepKind::kMixed) {
      before_next += step.length();
      ++count_before_next;
    }
  }
  return found;
}

void examine(Evidence& evidence, Verdict& verdict) {
  const run::Run& run = *evidence.run;
  if (run.kind != StepKind::kDecode) return;
  const Interference found = find(run);
  if (found.prefills == 0 || found.decodes == 0) return;
  const double share =
      static_cast<double>(found.prefill) / static_cast<double>(found.prefill + found.decode);
  if (share < kLeastShare) return;
  Suspect suspect;
  suspect.id = "prefill-interference";
  suspect.confidence =
      run.how == run::StepsHow::kMarked ? Confidence::kCertain : Confidence::kPossible;
  suspect.ns_per_step = suspect.exposed_ns_per_step = found.prefill / found.decodes;
  suspect.share = share;
  suspect.claim = fmt::format(
      "{} prefill steps run between {} decode steps: {} of {}; a token then takes {} where the "
      "median "
      "is {}",
      found.prefills, found.decodes, text::duration(found.prefill, true),
      text::duration(found.prefill + found.decode, true),
      text::duration(found.worst + evidence.steps.median, true),
      text::duration(evidence.steps.median, true));
  suspect.facts = {
      fact_named(evidence, "steps.mean_ns"),
      evidence.add("prefill.ns", static_cast<double>(found.prefill), "ns",
                   "prefill and mixed steps between decode steps", own_query("prefill.ns")),
      evidence.add("prefill.worst_inter_token_ns",
                   static_cast<double>(found.worst + evidence.steps.median), "ns",
                   "longest prefill in front of a decode step + median decode step",
                   own_query("prefill.worst_inter_token_ns"))};
  suspect.disproved_if = "the tail of the time between tokens stays without new requests";
  suspect.fix = "smaller prefill chunks, so that each delays the running requests less";
  suspect.alternatives = {
      "SGLang: --chunked-prefill-size, --enable-mixed-chunk; vLLM: "
      "--max-num-batched-tokens",
      "prefill on other GPUs than decode (disaggregation)"};
  suspect.gain = interruption_gain(evidence, suspect.exposed_ns_per_step);
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kPrefill{
    {"prefill-interference", "prefill steps between decode steps",
     "step marks that tell prefill from decode", "the tail stays without new requests"},
    examine};

}  // namespace culprit::verdict
