// outside-process: another process computes on the same GPU. Its kernels run while the run's own stand
// in the queue, so that no launch, wait or kernel of the run explains the time.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::Neighbours;

constexpr double kLeastShare = 0.05;
// Time slices of one GPU exclude each other; two GPUs of one name would overlap by chance.
constexpr double kMostTogether = 0.05;

void examine(Evidence& evidence, Verdict& verdict) {
  const Neighbours neighbours = evidence::find_neighbours(evidence);
  const auto theirs = static_cast<double>(neighbours.ns_per_step);
  const auto step = static_cast<double>(evidence.steps.mean);
  if (step <= 0 || static_cast<double>(neighbours.while_queued_per_step) < kLeastShare * step)
    return;
  if (static_cast<double>(neighbours.with_ours_per_step) > kMostTogether * theirs) return;
  Suspect suspect;
  suspect.id = "outside-process";
  suspect.confidence = Confidence::kLikely;
  suspect.claim = fmt::format(
      "Another process of the file computes on this GPU for {} a step, never at the same time, "
      "while this run's next kernel stands in the queue",
      text::duration(neighbours.ns_per_step, true));
  suspect.ns_per_step = neighbours.ns_per_step;
  suspect.exposed_ns_per_step = neighbours.while_queued_per_step;
  suspect.share = static_cast<double>(suspect.exposed_ns_per_step) / step;
  const known::Owner cured[] = {known::Owner::kUnexplained};
  suspect.gain = bound_gain(evidence, suspect.exposed_ns_per_step, cured);
  suspect.facts = {
      fact_named(evidence, "steps.mean_ns"), fact_named(evidence, "unexplained.ns_per_step"),
      evidence.add("neighbours.ns_per_step", theirs, "ns",
                   "activities of other processes on a device of this id, per used step",
                   own_query("neighbours.ns_per_step"))};
  suspect.disproved_if = "the other process runs on another GPU that has the same number there";
  suspect.fix = "give each process a GPU, or stop the other one while this one serves";
  suspect.alternatives = {"MPS lets kernels of several processes run side by side",
                          "MIG gives each process a fixed part of the GPU"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kOutsideProcess{
    {"outside-process", "activities of another process in the time in which this one's are queued",
     "a file that holds both processes", "the other process runs on another GPU"},
    examine};

}  // namespace culprit::verdict
