// Time in which the device waits, for the host or for other ranks: graphs that were lost, a slower host,
// communication that nothing hides any more, steps that stood still.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {
namespace {

using known::Owner;
using verdict::Confidence;

std::size_t index(Owner owner) { return static_cast<std::size_t>(owner); }

std::string budget_path(Owner owner) {
  return fmt::format("budget[] | select(.owner==\"{}\").delta_ns", known::owner_name(owner));
}

std::string moved_fact(Case& c, Owner owner) {
  return c.fact(fmt::format("{}.delta_ns", known::owner_name(owner)),
                static_cast<double>(c.moved(owner)), "ns", "budget after - budget before",
                budget_path(owner));
}

std::string owner_text(const Case& c, Owner owner) {
  const BudgetDelta* row = c.budget(owner);
  return before_after(row ? row->before : 0, row ? row->after : 0);
}

struct Waiting {
  Owner owner;
  std::string_view id, what, disproved_if, fix;
  std::string_view alternative;
};

constexpr std::array<Waiting, 4> kWaiting{{
    {Owner::kIdleHostLaunch, "host-launch", "the device waits for launches",
     "the time stays without the profiler's stacks and shapes, which slow the host: compare with "
     "--tpot",
     "fewer and cheaper launches: CUDA graphs, fused kernels, less Python between them",
     "a slower CPU, a lower CPU clock or another NUMA node than in the other recording"},
    {Owner::kIdleHostWork, "host-work", "the device waits while the host computes",
     "the same function takes as long on the other side, and there the device has work meanwhile",
     "move that work off the launching thread, or overlap it with the device: `culprit gaps AFTER` "
     "names it",
     "a check, a log or a sampler that was switched on"},
    {Owner::kIdleHostSync, "host-sync", "the device waits after the host waited for it",
     "the call that waits is in both recordings and costs the same",
     "take the wait out of the step: .item(), .cpu(), synchronize(); `culprit gaps AFTER` names "
     "the call",
     "overlap scheduling that was switched off"},
    {Owner::kIdleStall, "step-stall", "nothing happens on host and device",
     "the holes are there without the profiler",
     "freeze or disable the garbage collector, warm up all shapes",
     "the operating system: CPU limits, swapping, another process"},
}};

std::string host_text(const Case& c) {
  const auto &a = c.comparison.before, &b = c.comparison.after;
  std::string out;
  if (a.steps.host_ns > 0 && b.steps.host_ns > 0)
    out +=
        fmt::format("; the host needs {} a step", before_after(a.steps.host_ns, b.steps.host_ns));
  if (a.launches_per_step && b.launches_per_step)
    out += fmt::format(" for {} launches", counts_text(a.launches_per_step, b.launches_per_step));
  return out;
}

void accuse_waiting(Case& c, const Waiting& waiting) {
  if (c.owner_taken[index(waiting.owner)]) return;
  Cause cause;
  cause.id = waiting.id;
  cause.ns = cause.exposed = c.moved(waiting.owner);
  cause.confidence = Confidence::kLikely;
  cause.claim =
      fmt::format("{}: {} a step{}", waiting.what, owner_text(c, waiting.owner), host_text(c));
  cause.facts = {moved_fact(c, waiting.owner)};
  cause.disproved_if = waiting.disproved_if;
  cause.fix = waiting.fix;
  cause.alternatives = {std::string(waiting.alternative)};
  if (c.enter(std::move(cause))) c.owner_taken[index(waiting.owner)] = true;
}

std::string launches_text(const Side& side) {
  return side.launches_per_step ? text::amount(*side.launches_per_step) : std::string("unknown");
}

// Excess of the outliers per step, and what it is.
Cause stall_cause(Case& c, const Side& larger, Nanos delta) {
  Cause cause;
  cause.id = "step-stall";
  cause.beside_steps = true;
  cause.ns = cause.exposed = delta;
  cause.confidence = Confidence::kLikely;
  const Stall& longest =
      *std::max_element(larger.stalls.begin(), larger.stalls.end(),
                        [](const Stall& a, const Stall& b) { return a.length < b.length; });
  const auto waited = std::count_if(larger.stalls.begin(), larger.stalls.end(),
                                    [](const Stall& stall) { return stall.waited; });
  const bool waits = 2 * waited > static_cast<std::ptrdiff_t>(larger.stalls.size());
  std::string why =
      waits ? "the excess lies in communication, so this rank waits for another"
      : longest.cause == "unknown"
          ? "nothing is launched meanwhile: the garbage collector or the operating system"
          : fmt::format("the host is busy with: {}", longest.cause);
  cause.claim = fmt::format(
      "{} → {} steps stand still, up to {} where the median step takes {}; {}. "
      "They do not count in the steps' means",
      c.comparison.before.stalls.size(), c.comparison.after.stalls.size(),
      text::duration(longest.length, true), text::duration(larger.steps.median, true), why);
  cause.facts = {c.fact("stalls.delta_ns_per_step", static_cast<double>(delta), "ns",
                        "excess of outlier steps over the median, per step, after - before",
                        "facts[] | select(.name==\"stalls.delta_ns_per_step\").value")};
  cause.disproved_if = "they are as frequent in longer recordings of both sides";
  cause.fix = waits ? "look at the rank that it waits for: compare the folders of all ranks"
              : longest.cause == "compile" ? "warm up every shape before serving"
              : longest.cause == "allocator"
                  ? "keep memory: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
                  : "freeze or disable the garbage collector while serving";
  cause.alternatives = {"other processes on the machine: check CPU limits and swapping"};
  return cause;
}

void judge_prefill(Case& c) {
  const auto cost = [](const verdict::Verdict& verdict) {
    for (const verdict::Suspect& suspect : verdict.suspects)
      if (suspect.id == "prefill-interference") return &suspect;
    return static_cast<const verdict::Suspect*>(nullptr);
  };
  const verdict::Suspect *a = cost(c.before.verdict), *b = cost(c.after.verdict);
  if ((a == nullptr) == (b == nullptr)) return;
  const verdict::Suspect& one = a != nullptr ? *a : *b;
  Cause cause;
  cause.id = one.id;
  cause.beside_steps = true;
  cause.ns = cause.exposed = (b != nullptr ? 1 : -1) * one.exposed_ns_per_step;
  cause.confidence = one.confidence;
  cause.claim =
      fmt::format("only in the recording {}: {}", b != nullptr ? "after" : "before", one.claim);
  cause.disproved_if = one.disproved_if;
  cause.fix = one.fix;
  cause.alternatives = one.alternatives;
  cause.facts = {c.fact("prefill.delta_ns_per_step", static_cast<double>(cause.ns), "ns",
                        "prefill time between decode steps, per step, after - before",
                        "facts[] | select(.name==\"prefill.delta_ns_per_step\").value")};
  c.enter(std::move(cause));
}

}  // namespace

void judge_graphs(Case& c) {
  constexpr double kReplayed = 0.5, kEager = 0.1;
  const auto &a = c.comparison.before, &b = c.comparison.after;
  const std::string before = c.fact("before.replayed", a.replayed, "1",
                                    "kernels of graph replays / kernels", "before.replayed");
  const std::string after = c.fact("after.replayed", b.replayed, "1",
                                   "kernels of graph replays / kernels", "after.replayed");
  const bool lost = a.replayed >= kReplayed && b.replayed <= kEager;
  const bool gained = b.replayed >= kReplayed && a.replayed <= kEager;
  if (!lost && !gained) {
    c.rule_out("graph-missing", "the step is no longer replayed as a graph",
               fmt::format("{}; {} launches a step",
                           a.replayed == 0 && b.replayed == 0
                               ? std::string("neither side replays graphs")
                               : fmt::format("{} of the kernels are replayed before, {} after",
                                             text::percent(a.replayed), text::percent(b.replayed)),
                           counts_text(a.launches_per_step, b.launches_per_step)),
               {before, after});
    return;
  }
  constexpr std::array kOwners{Owner::kIdleHostLaunch, Owner::kIdleHostWork, Owner::kIdleHostSync,
                               Owner::kGraph};
  Cause cause;
  cause.id = "graph-missing";
  cause.facts = {before, after};
  for (const Owner owner : kOwners) {
    cause.ns += c.moved(owner);
    if (c.budget(owner) != nullptr) cause.facts.push_back(moved_fact(c, owner));
  }
  cause.exposed = cause.ns;
  cause.confidence = Confidence::kCertain;
  cause.claim = fmt::format(
      "the step is a graph replay {} and eager {}: {} → {} launches a step, and the "
      "device waits {} for launches",
      lost ? "before" : "afterwards", lost ? "afterwards" : "before", launches_text(a),
      launches_text(b), owner_text(c, Owner::kIdleHostLaunch));
  cause.disproved_if =
      "the other recording was made with graphs disabled on purpose (--disable-cuda-graph, "
      "--enforce-eager)";
  cause.fix = lost ? "capture this batch: --cuda-graph-max-bs (SGLang), --cuda-graph-sizes (vLLM), "
                     "and no --enforce-eager"
                   : "nothing: replays launch the step at once";
  cause.alternatives = {
      "a batch above the largest captured one, or an operation that graphs cannot hold",
      "torch.compile or a LoRA path that falls back to eager"};
  if (!c.enter(std::move(cause))) return;
  for (const Owner owner : kOwners) c.owner_taken[index(owner)] = true;
}

void judge_communication(Case& c) {
  const Nanos exposed = c.moved(Owner::kComm) + c.moved(Owner::kCommWait);
  const auto rows = c.free_rows([](const Row& row) { return known::is_comm(row.shown.role); });
  bool replaced = false;  // its time has a cause already
  for (std::size_t r = 0; r < c.rows.rows.size(); ++r)
    replaced |= c.taken[r] != 0 && known::is_comm(c.rows.rows[r].shown.role);
  Cause cause = c.cause_of("exposed-comm", rows);
  cause.exposed = exposed;
  if (std::abs(cause.exposed) > std::abs(cause.ns)) cause.ns = cause.exposed;
  const std::string fact = moved_fact(c, Owner::kComm);
  double before = 0, after = 0;
  for (const std::size_t r : rows) {
    if (c.rows.rows[r].shown.before) before += c.rows.rows[r].shown.before->calls_per_step;
    if (c.rows.rows[r].shown.after) after += c.rows.rows[r].shown.after->calls_per_step;
  }
  const std::string text =
      before == 0 && after == 0
          ? std::string("neither side communicates")
          : fmt::format("communication that nothing hides: {} a step, {} calls",
                        owner_text(c, Owner::kComm), counts_text(before, after));
  cause.facts.push_back(fact);
  cause.confidence = Confidence::kLikely;
  cause.claim = text;
  cause.disproved_if =
      "the other ranks came late: then it is waiting, not transfer; compare the folders of all "
      "ranks";
  cause.fix = "look at the slowest rank first, then at the link and at what used to overlap";
  cause.alternatives = {"another algorithm or protocol: NCCL_DEBUG=INFO names it",
                        "overlap that was lost: two-batch overlap, a second stream"};
  const bool entered = !replaced && c.enter(std::move(cause));
  if (!entered && !c.found("replaced-kernel"))
    c.rule_out("exposed-comm", "communication takes longer, or nothing hides it any more", text,
               {fact});
}

void judge_host(Case& c) {
  for (const Waiting& waiting : kWaiting) accuse_waiting(c, waiting);
  const bool blamed = std::any_of(kWaiting.begin(), kWaiting.end(), [&](const Waiting& waiting) {
    return c.owner_taken[index(waiting.owner)];
  });
  if (blamed) return;
  std::vector<std::string> facts;
  std::string parts;
  for (const Waiting& waiting : kWaiting) {
    if (c.budget(waiting.owner) == nullptr) continue;
    facts.push_back(moved_fact(c, waiting.owner));
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", known::owner_name(waiting.owner),
                         owner_text(c, waiting.owner));
  }
  c.rule_out("host", "the host got slower",
             parts.empty() ? std::string("the device waits for the host on neither side") : parts,
             facts);
}

void judge_stalls(Case& c) {
  const auto &a = c.comparison.before, &b = c.comparison.after;
  const Nanos delta = b.stalled_per_step - a.stalled_per_step;
  const bool any = !a.stalls.empty() || !b.stalls.empty();
  const auto count_a = a.stalls.size(), count_b = b.stalls.size();
  if (any && count_a != count_b)
    c.enter(stall_cause(c, delta >= 0 && !b.stalls.empty() ? b : a.stalls.empty() ? b : a, delta));
  judge_prefill(c);
}

}  // namespace culprit::compare
