// host-work: the device stands still while the launching thread computes something of its own:
// scheduling, sampling on the CPU, detokenisation. Neither launches nor a wait hold it up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

// A profiler with Python frames slows the host's own work as well.
constexpr double kLeastShare = 0.1;

void examine(evidence::Evidence& evidence, Verdict& verdict) {
  const evidence::BudgetRow* row = row_of(evidence, Owner::kIdleHostWork);
  if (row == nullptr || row->share < kLeastShare) return;
  const std::vector<evidence::HostWork> works = evidence::find_host_work(evidence);
  const bool named = !works.empty() && !works.front().name.empty();
  Suspect suspect;
  suspect.id = "host-work";
  suspect.confidence = named ? Confidence::kCertain : Confidence::kLikely;
  suspect.claim =
      fmt::format("The device stands still while the launching thread works on its own{}",
                  named ? fmt::format(": {} in {}", text::duration(works.front().ns_per_step, true),
                                      works.front().name)
                        : ", without a call for most of each gap");
  if (named && works.front().source) suspect.where.push_back(*works.front().source);
  suspect.ns_per_step = suspect.exposed_ns_per_step = row->ns_per_step;
  suspect.share = row->share;
  const Owner cured[] = {Owner::kIdleHostWork};
  suspect.gain = bound_gain(evidence, row->ns_per_step, cured);
  suspect.facts = {fact_named(evidence, "steps.mean_ns"),
                   fact_named(evidence, "idle-host-work.ns_per_step")};
  if (named) {
    suspect.facts.push_back(evidence.add("host_work.largest_ns_per_step",
                                         static_cast<double>(works.front().ns_per_step), "ns",
                                         "idle device time within this frame or operator",
                                         own_query("host_work.largest_ns_per_step")));
  }
  suspect.disproved_if = "the gaps stay when that work is moved to another thread or left out";
  suspect.fix =
      "do it while the device works: prepare the next step before this one's tokens arrive";
  suspect.alternatives = {"SGLang: leave out --disable-overlap-schedule; vLLM: --async-scheduling",
                          "sample on the device; keep Python objects out of the loop over requests",
                          "detokenise and stream in another process"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kHostWork{
    {"host-work", "idle device time in which the launching thread computes and calls nothing",
     "the host's API calls; Python frames or operators name the work",
     "the gaps stay without that work"},
    examine};

}  // namespace culprit::verdict
