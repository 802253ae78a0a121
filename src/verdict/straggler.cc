// straggler: one rank comes last to the collectives, and all others wait for it. What that costs is
// the step with that rank as the median of the others, retimed over the meetings of all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "evidence/ranks.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::LateCause;
using evidence::Ranks;
using evidence::RankSkew;

constexpr double kLeastShare = evidence::kLeastLate;  // of the step

// Mean over the steps that count and those that were too long to: a rank's stalls are in the latter.
Nanos mean_of_all(const Evidence& evidence) {
  Nanos sum = evidence.steps.mean * evidence.steps.used;
  for (const evidence::Outlier& outlier : evidence.outliers)
    sum += evidence.run->steps[static_cast<std::size_t>(outlier.step)].length();
  const auto count = evidence.steps.used + static_cast<std::int64_t>(evidence.outliers.size());
  return count > 0 ? sum / count : 0;
}

// The step with the late ranks as the others.
Nanos as_the_others(const evidence::Skew& skew, Nanos step) {
  if (skew.reproduced <= 0) return step;
  return std::min(step, static_cast<Nanos>(std::llround(static_cast<double>(step) *
                                                        static_cast<double>(skew.as_the_others) /
                                                        static_cast<double>(skew.reproduced))));
}

// What the host of any other rank needs for a step by itself, at most `step`.
Nanos longest_host(const Ranks& ranks, Nanos step) {
  Nanos longest = 0;
  for (std::size_t r = 0; r < ranks.all.size(); ++r) {
    const bool late =
        std::find(ranks.skew.late.begin(), ranks.skew.late.end(), r) != ranks.skew.late.end();
    if (!late) longest = std::max(longest, ranks.all[r].record.host_ns);
  }
  return std::min(longest, step);
}

struct Wording {
  std::string_view why, fix, disproved_if;
};

// By LateCause.
constexpr std::array<Wording, 11> kWordings{{
    {"nothing recorded tells why", "record that rank with host activities and Python stacks",
     "another rank is last in a second recording"},
    {"it has more work", "spread the load: requests, tokens or experts, over the ranks",
     "it is as late with the same load as the others"},
    {"its kernels take longer for the same work",
     "look at that GPU's clocks, temperature and power limit (nvidia-smi -q -d "
     "CLOCK,PERFORMANCE,POWER), or take it out",
     "another GPU in its place is as late"},
    {"its expert GEMMs take longer in the same grid: more rows",
     "balance the experts over the ranks (EPLB, redundant experts)",
     "its experts get no more tokens than the other ranks'"},
    {"its host launches late",
     "look at that host: pinning, clock, other processes; or replay a graph",
     "the rank's process on other cores is as late"},
    {"its host waits for the device where the others do not",
     "take out the wait, or make all ranks wait at the same place",
     "it is as late without that wait"},
    {"its host works on something else", "take that work off the rank's launching thread",
     "it is as late without that work"},
    {"its host stands still", "look at what takes its cores: other processes, interrupts, paging",
     "it is as late alone on its cores"},
    {"its host collects garbage",
     "freeze what start-up made (gc.freeze), and collect between requests",
     "it is as late with the collector off"},
    {"its host compiles", "warm up every rank with every batch size",
     "it is as late after a longer warm-up"},
    {"its host allocates memory", "allocate before serving, on every rank",
     "it is as late after a longer warm-up"},
}};
const Wording& wording(LateCause cause) { return kWordings[static_cast<std::size_t>(cause)]; }

std::string names_of(const Ranks& ranks) {
  std::string names;
  for (std::size_t i = 0; i < ranks.skew.late.size(); ++i) {
    const std::string_view between = i == 0 ? "" : i + 1 == ranks.skew.late.size() ? " and " : ", ";
    names += fmt::format("{}{}", between, rank_name(ranks.all[ranks.skew.late[i]], ranks));
  }
  return names;
}

// "1.18 times as long", "2.2 times the blocks", "in gc.collect".
std::string measure_of(const RankSkew& skew) {
  switch (skew.cause) {
    case LateCause::kSlowKernels:
    case LateCause::kExpertImbalance:
      return fmt::format(", {} times as long", text::fixed(skew.kernel_ratio, 2));
    case LateCause::kMoreWork:
      return fmt::format(", {} times the blocks of the others' kernels",
                         text::fixed(skew.work_ratio, 2));
    default:
      return skew.sign.empty() ? std::string() : fmt::format(", in {}", skew.sign);
  }
}

Nanos mean_wait(const Ranks& ranks) {
  Nanos sum = 0;
  std::int64_t count = 0;
  for (std::size_t r = 0; r < ranks.all.size(); ++r) {
    if (std::find(ranks.skew.late.begin(), ranks.skew.late.end(), r) != ranks.skew.late.end() ||
        ranks.skew.ranks[r].meetings == 0)
      continue;
    sum += ranks.all[r].wait_ns_per_step - ranks.skew.ranks[r].absent;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

void state(Evidence& evidence, const RankSkew& late, Nanos after, Suspect& suspect) {
  const Ranks& ranks = *evidence.ranks;
  const auto say = [&](std::string name, double value, std::string unit, std::string how) {
    const std::string query = own_query(name);
    suspect.facts.push_back(
        evidence.add(std::move(name), value, std::move(unit), std::move(how), query));
  };
  suspect.facts.push_back(fact_named(evidence, "steps.mean_ns"));
  say("straggler.last", static_cast<double>(late.last) / static_cast<double>(late.meetings), "1",
      fmt::format("share of {} collectives to which it came last", late.meetings));
  say("straggler.others_wait_ns_per_step", static_cast<double>(mean_wait(ranks)), "ns",
      "exposed waiting of the other ranks, mean");
  say("straggler.step_ns_as_others", static_cast<double>(after), "ns",
      "all ranks' meetings retimed, the late ranks needing what the median of the others needs");
  say("straggler.retiming_error",
      std::abs(static_cast<double>(ranks.skew.reproduced - ranks.skew.recorded)) /
          static_cast<double>(std::max<Nanos>(1, ranks.skew.recorded)),
      "1", "the same without a change, against what was recorded");
  say("straggler.kernel_ratio", late.kernel_ratio, "1",
      "time of its kernels of equal name and grid over the median of the others'");
  say("straggler.work_ratio", late.work_ratio, "1",
      "blocks of its kernels that have more of them, over the median of the others'; 1: none has");
}

// What it was not, with the figures that say so.
void rule_out(const Suspect& suspect, const Ranks& ranks, const RankSkew& late, Verdict& verdict) {
  const bool work = late.cause == LateCause::kMoreWork;
  const bool slow =
      late.cause == LateCause::kSlowKernels || late.cause == LateCause::kExpertImbalance;
  std::size_t most = 0;
  for (std::size_t r = 0; r < ranks.all.size(); ++r)
    if (ranks.all[r].wait_ns_per_step > ranks.all[most].wait_ns_per_step) most = r;
  const evidence::RankFigures& waits = ranks.all[most];
  verdict.ruled_out.push_back(
      {"slow-communication", "the time in the collectives is transfer",
       fmt::format("{} spends {} a step in them, of which {} is waiting and {} transfer",
                   rank_name(waits, ranks),
                   text::duration(waits.comm_ns_per_step + waits.wait_ns_per_step, true),
                   text::duration(waits.wait_ns_per_step, true),
                   text::duration(waits.comm_ns_per_step, true)),
       suspect.facts});
  if (!slow)
    verdict.ruled_out.push_back(
        {"slow-kernels", "the rank's GPU is slower than the others",
         fmt::format("its kernels of equal name and grid take {} times the others' time",
                     text::fixed(late.kernel_ratio, 2)),
         suspect.facts});
  if (!work)
    verdict.ruled_out.push_back(
        {"more-work", "the rank has more work than the others",
         fmt::format("no kernel of it that counts has more calls or blocks"), suspect.facts});
}

// Nobody stands out, or not by enough to matter.
void acquit(Evidence& evidence, Verdict& verdict) {
  const Ranks& ranks = *evidence.ranks;
  Nanos most = 0;
  for (const evidence::RankFigures& rank : ranks.all) most = std::max(most, rank.wait_ns_per_step);
  const std::string fact = evidence.add("ranks.largest_wait_ns_per_step", static_cast<double>(most),
                                        "ns", "exposed waiting of the rank that waits longest",
                                        own_query("ranks.largest_wait_ns_per_step"));
  verdict.ruled_out.push_back(
      {"straggler",
       "one rank keeps the others waiting",
       fmt::format("no rank stands out; the longest exposed waiting is {} a step",
                   text::duration(most, true)),
       {fact}});
}

void examine(Evidence& evidence, Verdict& verdict) {
  if (evidence.ranks == nullptr || !evidence.ranks->skew.known()) return;
  const Ranks& ranks = *evidence.ranks;
  const Nanos step = mean_of_all(evidence);
  if (step <= 0) return;
  const Nanos meetings_only = as_the_others(ranks.skew, step);
  const Nanos after =
      ranks.skew.late.empty() ? step : std::max(meetings_only, longest_host(ranks, step));
  const Nanos cost = step - after;
  if (static_cast<double>(cost) < kLeastShare * static_cast<double>(step))
    return acquit(evidence, verdict);
  const RankSkew& late = ranks.skew.ranks[ranks.skew.late.front()];
  const bool one = ranks.skew.late.size() == 1;
  Suspect suspect;
  suspect.id = "straggler";
  suspect.cause = evidence::late_cause_name(late.cause);
  const bool whole = ranks.absent == 0 && ranks.skew.whole;
  suspect.confidence = late.cause == LateCause::kUnknown ? Confidence::kPossible
                       : whole                           ? Confidence::kCertain
                                                         : Confidence::kLikely;
  suspect.claim =
      fmt::format("{} {} last to {} of {} collectives; the others wait {} a step for {}: {}{}",
                  names_of(ranks), one ? "comes" : "come", text::count(late.last),
                  text::count(late.meetings), text::duration(mean_wait(ranks), true),
                  one ? "it" : "them", wording(late.cause).why, measure_of(late));
  suspect.ns_per_step = suspect.exposed_ns_per_step = cost;
  suspect.share = static_cast<double>(cost) / static_cast<double>(step);
  suspect.who = fmt::format("{} ({})", names_of(ranks), suspect.cause);
  suspect.gain.step_now = step;
  suspect.gain.low = std::min(after, meetings_only);
  suspect.gain.expected = suspect.gain.high = after;
  suspect.gain.method = "retimed";
  suspect.gain.bound_by_after = after > meetings_only ? "host-launch" : "gpu";
  state(evidence, late, after, suspect);
  suspect.disproved_if = wording(late.cause).disproved_if;
  suspect.fix = wording(late.cause).fix;
  suspect.alternatives = {
      "hold the slow rank's trace against another one's: culprit kernels, gaps"};
  rule_out(suspect, ranks, late, verdict);
  verdict.suspects.push_back(std::move(suspect));
}

bool of_same_cause(std::string_view suspect, std::string_view cause) {
  if (cause == "idle-host-launch")
    return suspect == "host-launch" || suspect == "graph-missing" || suspect == "graph-launch";
  if (cause == "idle-host-sync") return suspect == "host-sync" || suspect == "blocking-copy";
  if (cause == "idle-host-work" || cause == "idle-stall" || cause == "gc" || cause == "compile" ||
      cause == "allocator")
    return suspect == "host-work" || suspect == "step-stall" || suspect == "host-sync";
  return false;
}

}  // namespace

void yield_to_straggler(const evidence::Evidence& evidence, Verdict& verdict) {
  const auto straggler = std::find_if(verdict.suspects.begin(), verdict.suspects.end(),
                                      [](const Suspect& s) { return s.id == "straggler"; });
  if (straggler == verdict.suspects.end()) return;
  const Suspect late = *straggler;
  std::erase_if(verdict.suspects, [&](Suspect& suspect) {
    if (!of_same_cause(suspect.id, late.cause)) return false;
    const Nanos left = std::max<Nanos>(0, suspect.exposed_ns_per_step - late.exposed_ns_per_step);
    if (static_cast<double>(left) >= kLeastShare * static_cast<double>(evidence.steps.mean)) {
      suspect.exposed_ns_per_step = left;
      suspect.share = static_cast<double>(left) / static_cast<double>(evidence.steps.mean);
      return false;
    }
    verdict.ruled_out.push_back(
        {suspect.id, "every rank is slow in that way",
         "only the late rank is: with it as the others, nothing of it is left on the critical path",
         late.facts});
    return true;
  });
}

void bound_by_ranks(const evidence::Evidence& evidence, const evidence::Change& change,
                    Gain& gain) {
  if (evidence.ranks == nullptr || !evidence.ranks->skew.known() || gain.step_now <= 0) return;
  const Ranks& ranks = *evidence.ranks;
  const run::Run& run = *evidence.run;
  std::vector<std::pair<std::string_view, double>> scaled;  // kernels by name
  for (std::size_t g = 0; g < change.scale.size(); ++g) {
    if (change.scale[g] == 1) continue;
    if (known::is_comm(run.groups[g].kind)) return;  // transfer is no rank's own time
    scaled.emplace_back(run.trace->strings.or_empty(run.groups[g].name), change.scale[g]);
  }
  const Nanos saved = gain.step_now - gain.expected;
  std::vector<double> factor(ranks.all.size(), 1);
  for (std::size_t r = 0; r < ranks.all.size(); ++r) {
    const evidence::RankFigures& rank = ranks.all[r];
    Nanos its = r == ranks.headline ? saved : 0;
    if (r != ranks.headline && scaled.empty()) {
      for (const evidence::BudgetRow& row : rank.budget)
        if (known::is_idle(row.owner)) its += row.ns_per_step;
      its = std::min(its, saved);
    }
    for (const auto& [name, scale] : scaled) {
      if (r == ranks.headline) break;
      const auto at = std::lower_bound(
          rank.record.kernels.begin(), rank.record.kernels.end(), name,
          [](const evidence::RankKernel& kernel, std::string_view n) { return kernel.name < n; });
      if (at != rank.record.kernels.end() && at->name == name)
        its += std::llround(static_cast<double>(at->ns) * (1 - scale));
    }
    const Nanos own = rank.steps.mean - rank.wait_ns_per_step - rank.comm_ns_per_step;
    if (own > 0)
      factor[r] = std::clamp(1 - static_cast<double>(its) / static_cast<double>(own), 0.0, 1.0);
  }
  const double ratio = ranks.skew.step_ratio(factor);
  const Nanos after = std::min(
      gain.step_now, static_cast<Nanos>(std::llround(static_cast<double>(gain.step_now) * ratio)));
  constexpr double kNotable = 0.01;  // of the step: less is the model's own error
  if (static_cast<double>(after - gain.expected) < kNotable * static_cast<double>(gain.step_now))
    return;
  gain.expected = after;
  gain.high = std::max(gain.high, after);
  gain.bound_by_after = "other-ranks";
}

const Judge kStraggler{
    {"straggler", "a rank that comes last to the collectives, for which the others wait",
     "traces of two ranks or more, with collectives in common",
     "another rank is last in a second recording"},
    examine};

}  // namespace culprit::verdict
