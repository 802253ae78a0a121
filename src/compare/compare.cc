// The comparison: describe both sides, judge the noise, pair the kernels, then ask the judges.
#include "compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"
#include "compare/noise.h"
#include "compare/rows.h"
#include "compare/sides.h"

namespace culprit::compare {
namespace {

using verdict::Standing;

constexpr double kLeastPart = 0.005;    // of the step: a smaller part is no cause
constexpr double kLeastUnmoved = 0.02;  // likewise where the step as a whole is unchanged

void judge_step(const Input& before, const Input& after, const Options& options, Comparison& out) {
  const std::vector<Nanos> a = lengths_of(before.run), b = lengths_of(after.run);
  const Noise noise = judge_noise(a, b);
  out.delta = out.after.steps.mean - out.before.steps.mean;
  const auto shorter = static_cast<double>(std::min(out.before.steps.mean, out.after.steps.mean));
  if (out.before.steps.mean > 0)
    out.share = static_cast<double>(out.delta) / static_cast<double>(out.before.steps.mean);
  out.noise = noise.half_width;
  out.p_value = noise.p;
  const bool large =
      std::abs(static_cast<double>(out.delta)) >= options.least_share * shorter && out.delta != 0;
  bool differs = large;
  if (noise.p) {
    differs =
        large && *noise.p < kSignificant && std::abs(out.delta) > noise.half_width.value_or(0);
    out.significant = differs;
  } else {
    differs = large && noise.apart;
    const auto fewest = std::min(a.size(), b.size());
    const std::string_view why = fewest < 2
                                     ? "how much steps vary cannot be judged from one"
                                     : "too few to judge how much steps vary; record 5 or more";
    out.notes.add({"noise-unknown",
                   store::Severity::kWarning,
                   1,
                   {},
                   {},
                   "",
                   fmt::format("{} steps before, {} after: {}", a.size(), b.size(), why)});
  }
  out.outcome = !differs        ? Outcome::kNoDifference
                : out.delta > 0 ? Outcome::kSlower
                                : Outcome::kFaster;
}

bool same_load(const Side& before, const Side& after) {
  if (before.batch != after.batch) return false;
  const bool marked = before.steps.tokens_how == "mark" && after.steps.tokens_how == "mark";
  return !marked || before.steps.tokens == after.steps.tokens;
}

void rank(Comparison& out) {
  const Nanos of_step = std::abs(out.delta);
  std::stable_sort(out.causes.begin(), out.causes.end(), [](const Cause& a, const Cause& b) {
    if (a.beside_steps != b.beside_steps) return b.beside_steps;
    const Nanos ns_a = std::abs(a.exposed), ns_b = std::abs(b.exposed);
    return ns_a != ns_b ? ns_a > ns_b : a.id < b.id;
  });
  for (std::size_t i = 0; i < out.causes.size(); ++i) {
    Cause& cause = out.causes[i];
    const Nanos own = std::abs(cause.exposed);
    const Nanos next = i + 1 < out.causes.size() ? std::abs(out.causes[i + 1].exposed) : 0;
    const bool same_way = (cause.exposed > 0) == (out.delta > 0);
    const bool leads =
        i == 0 && same_way && !cause.beside_steps && own >= 2 * next && 2 * own >= of_step;
    cause.standing = leads                 ? Standing::kCulprit
                     : 10 * own >= of_step ? Standing::kContributor
                                           : Standing::kMinor;
  }
}

void state_step(Case& c) {
  const Comparison& out = c.comparison;
  c.fact("delta_ns_per_step", static_cast<double>(out.delta), "ns",
         "mean step after - mean step before", "delta_ns_per_step");
  if (out.noise)
    c.fact("noise_ns", static_cast<double>(*out.noise), "ns",
           "half of the 95 % interval of that difference, from the steps' own spread (Welch)",
           "noise_ns");
  if (out.p_value)
    c.fact("p_value", *out.p_value, "1",
           "Mann-Whitney rank test over the steps' lengths, two-sided", "p_value");
}

void find_causes(Case& c) {
  state_step(c);
  judge_load(c);
  judge_device(c);
  judge_clock(c);
  judge_size(c);
  judge_suspects(c);
  judge_graphs(c);
  judge_fusion(c);
  judge_replaced(c);
  judge_communication(c);
  judge_host(c);
  judge_rest(c);
  judge_stalls(c);
  rank(c.comparison);
}

}  // namespace

std::vector<verdict::Rule> rules() {
  return {
      {"load", "another batch: the same kernels have more to do", "the batch in the step marks",
       "the difference stays with one batch on both sides"},
      {"other-device", "the recordings are of different devices", "the devices' names",
       "the difference stays on one device"},
      {"clock", "all unchanged kernels take longer by one factor, whatever bounds them",
       "kernels of several kinds that are the same on both sides", "the clocks were equal"},
      {"fusion-lost", "several kernels stand where one stood", "the order of kernels in the step",
       "the fused kernel was switched off on purpose"},
      {"replaced-kernel", "another kernel of the same role at the same place",
       "the order of kernels in the step", "the old kernel takes as long on this load"},
      {"more-calls", "a kernel runs more often in a step", "the kernels of both sides",
       "the work is split over more calls of the same sum"},
      {"new-kernel", "a kernel that runs on one side only", "the kernels of both sides",
       "the other side has it under another name"},
      {"slower-kernel", "the same kernel takes another time, and nothing recorded says why",
       "the kernels of both sides", "it takes the same time alone, on the same input"},
  };
}

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"slower", "faster", "no-significant-difference",
                                         "not-comparable"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string_view change_name(Change change) {
  constexpr std::string_view kNames[] = {"same",        "slower",      "faster",       "more-calls",
                                         "fewer-calls", "larger-grid", "smaller-grid", "replaced",
                                         "new",         "gone"};
  return kNames[static_cast<std::size_t>(change)];
}

Comparison compare(const Input& before, const Input& after, const Options& options) {
  Comparison out;
  out.before = describe(before);
  out.after = describe(after);
  note_differences(out.before, out.after, out.notes);
  judge_step(before, after, options, out);
  out.budget = budget_deltas(before.evidence, after.evidence);
  const Rows rows = find_rows(before, after);
  for (const Row& row : rows.rows) out.kernels.push_back(row.shown);
  Case c{before, after, out, rows};
  c.same_load = same_load(out.before, out.after);
  const double shorter = static_cast<double>(std::min(out.before.steps.mean, out.after.steps.mean));
  const bool unmoved = out.outcome == Outcome::kNoDifference;
  c.least = static_cast<Nanos>(std::ceil((unmoved ? kLeastUnmoved : kLeastPart) * shorter));
  // Parts that cancel out must stand out of the noise as the whole would have to.
  if (unmoved) c.least = std::max(c.least, out.noise.value_or(0));
  c.least = std::max<Nanos>(c.least, 1);
  c.taken.assign(rows.rows.size(), 0);
  find_causes(c);
  return out;
}

Nanos communication_delta(const Comparison& comparison) {
  Nanos sum = 0;
  for (const BudgetDelta& row : comparison.budget)
    if (known::is_comm(row.owner)) sum += row.delta();
  return sum;
}

std::size_t find_headline(const std::vector<Ranked>& all) {
  const auto own_stalls = [](const Side& side) {
    Nanos sum = 0;
    for (const Stall& stall : side.stalls) sum += stall.waited ? 0 : stall.excess;
    return sum;
  };
  const auto moved = [&](const Ranked& rank) {
    const Comparison& c = rank.comparison;
    const bool usable = c.outcome != Outcome::kNotComparable;
    const Nanos stalls = std::abs(own_stalls(c.after) - own_stalls(c.before)) /
                         std::max<Nanos>(1, c.after.steps.used);
    return std::pair(usable, std::abs(c.delta - communication_delta(c)) + stalls);
  };
  const auto most = std::max_element(all.begin(), all.end(), [&](const Ranked& a, const Ranked& b) {
    return moved(a) < moved(b);
  });
  return static_cast<std::size_t>(most - all.begin());
}

Comparison refuse(std::string before, std::string after, std::string why) {
  Comparison out;
  out.before.path = std::move(before);
  out.after.path = std::move(after);
  out.why_not = std::move(why);
  return out;
}

}  // namespace culprit::compare
