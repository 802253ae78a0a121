// host-sync: the host waited for the device, and the device then waited for the host. A wait over a
// busy device costs nothing and is ruled out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using known::Owner;

// The waits that held launches back: which calls, how often, from where.
struct Waits {
  store::StringId api;  // of the most idle time
  Nanos idle = 0;       // per step
  double per_step = 0;
  std::optional<run::Source> source;
};

Waits find_waits(const evidence::Evidence& evidence) {
  const run::Run& run = *evidence.run;
  Waits waits;
  std::map<store::StringId, Nanos> idle_by_api;
  std::vector<store::CallRow> calls;
  for (const evidence::Gap& gap : evidence.gaps) {
    if (gap.owner != Owner::kIdleHostSync || is_behind_blocking_copy(evidence, gap)) continue;
    waits.idle += gap.end - gap.begin;
    if (!gap.call.valid()) continue;
    idle_by_api[run.trace->calls.name[gap.call.index]] += gap.end - gap.begin;
    if (calls.empty() || calls.back() != gap.call) calls.push_back(gap.call);
  }
  Nanos most = 0;
  for (const auto& [api, idle] : idle_by_api) {
    if (idle > most) waits.api = api, most = idle;
  }
  if (evidence.steps.used > 0) {
    waits.idle /= evidence.steps.used;
    waits.per_step = static_cast<double>(calls.size()) / static_cast<double>(evidence.steps.used);
  }
  for (const store::CallRow call : calls) {
    if (run.trace->calls.name[call.index] != waits.api) continue;
    waits.source = run::source_of(run, call);
    if (waits.source) break;
  }
  return waits;
}

std::string state_wait(evidence::Evidence& evidence) {
  return evidence.add("steps.host_wait_ns", static_cast<double>(evidence.steps.host_wait_ns), "ns",
                      "time per step the launching thread sat in calls that wait for the device",
                      evidence::sql_query("SELECT host_wait_ns FROM summary"));
}

void accuse(evidence::Evidence& evidence, const Waits& waits, Verdict& verdict) {
  Suspect suspect;
  suspect.id = "host-sync";
  suspect.confidence = Confidence::kLikely;
  const std::int64_t times = std::llround(waits.per_step);
  suspect.claim = fmt::format(
      "The host waits for the device ({}) and only then launches on: {} a step the device is idle "
      "after such a wait",
      evidence.run->trace->strings.or_empty(waits.api),
      times > 1 ? text::count(times) + " times" : "once");
  suspect.exposed_ns_per_step = waits.idle;
  suspect.ns_per_step = std::max(waits.idle, evidence.steps.host_wait_ns);
  if (waits.source) suspect.where.push_back(*waits.source);
  Cure no_waits{{}, {Owner::kIdleHostSync}};
  no_waits.change.no_waits = true;
  set_cost(evidence, no_waits, suspect);
  suspect.facts = {fact_named(evidence, "idle-host-sync.ns_per_step"),
                   fact_named(evidence, "steps.mean_ns"), state_wait(evidence)};
  suspect.disproved_if =
      "the idle time stays when the waiting call is removed or made asynchronous";
  suspect.fix =
      "keep the value on the device, or copy it without waiting (pinned memory, an event "
      "one step later), so that the next launches are queued while the device works";
  suspect.alternatives = {"overlap scheduling: prepare the next step while this one runs"};
  verdict.suspects.push_back(std::move(suspect));
}

// Most of a long wait is time in which the device works: that part makes nothing slow.
void rule_out(evidence::Evidence& evidence, Nanos idle, bool accused, Verdict& verdict) {
  constexpr double kNotableWait = 0.2;  // of the step; less is not worth ruling out
  constexpr Nanos kMostlyHidden = 5;    // times the idle time
  const evidence::StepStats& steps = evidence.steps;
  const Nanos waited = steps.host_wait_ns;
  const bool notable =
      static_cast<double>(waited) >= kNotableWait * static_cast<double>(steps.mean);
  if (!notable || waited < kMostlyHidden * idle) return;
  verdict.ruled_out.push_back(
      {accused ? "host-wait" : "host-sync",
       "the host's waiting for the device makes the step slow",
       fmt::format(
           "the host waits {} a step, but the device works meanwhile: only {} is idle after "
           "a wait",
           text::duration(waited, true), text::duration(idle, true)),
       {state_wait(evidence)}});
}

void examine(evidence::Evidence& evidence, Verdict& verdict) {
  constexpr double kLeastShare = 0.05;  // a step always ends in some wait for its tokens
  const Waits waits = find_waits(evidence);
  const bool costs = waits.idle > 0 && static_cast<double>(waits.idle) >=
                                           kLeastShare * static_cast<double>(evidence.steps.mean);
  if (costs) accuse(evidence, waits, verdict);
  rule_out(evidence, waits.idle, costs, verdict);
}

}  // namespace

const Judge kHostSync{
    {"host-sync", "idle device time after the host waited for the device",
     "the host's API calls in the trace", "the idle time stays without the waiting call"},
    examine};

}  // namespace culprit::verdict
