#include "evidence/floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace culprit::evidence {
namespace {

using known::Component;
using known::Owner;

struct Rule {
  std::string_view name;
  std::vector<Component> components;
  std::vector<Owner> owners;
  std::string_view together;
};

constexpr std::string_view kAlike =
    "the same kernels compute them, and no name tells whose weights";

// Every owner and every component is in one rule.
std::vector<Rule> rules(bool experts_apart) {
  std::vector<Rule> all{
      {"matrix products",
       {Component::kAttention, Component::kIndexer, Component::kDenseMlp, Component::kSharedExperts,
        Component::kRouter, Component::kLmHead},
       {Owner::kGemm},
       kAlike},
      {"routed experts", {Component::kExperts}, {Owner::kMoeGemm}, ""},
      {"attention and caches",
       {Component::kKvCache, Component::kIndexCache},
       {Owner::kAttention},
       "indexer kernels count as attention"},
      {"embedding", {Component::kEmbedding}, {Owner::kEmbedding}, ""},
      {"communication",
       {Component::kCommBytes, Component::kCommLatency},
       {Owner::kComm, Owner::kCommWait},
       "one kernel pays both"},
      {"other kernels",
       {},
       {Owner::kQuantize, Owner::kCast, Owner::kCopy, Owner::kNorm, Owner::kRope,
        Owner::kActivation, Owner::kRouter, Owner::kKvStore, Owner::kSampling, Owner::kMemcpy,
        Owner::kMemset, Owner::kElementwise, Owner::kReduce, Owner::kOtherKernel},
       ""},
      {"unexplained", {}, {Owner::kGraph, Owner::kUnexplained}, ""},
      {"idle",
       {},
       {Owner::kIdleHostLaunch, Owner::kIdleHostSync, Owner::kIdleHostWork, Owner::kIdleStall},
       ""},
  };
  if (!experts_apart) {  // experts that run as plain matrix products
    all[0].components.push_back(Component::kExperts);
    all[0].owners.push_back(Owner::kMoeGemm);
    all.erase(all.begin() + 1);
  }
  return all;
}

Nanos measured(const std::vector<BudgetRow>& budget, const std::vector<Owner>& owners) {
  Nanos total = 0;
  for (const BudgetRow& row : budget) {
    if (std::find(owners.begin(), owners.end(), row.owner) != owners.end())
      total += row.ns_per_step;
  }
  return total;
}

Error unknown(std::string what, std::string hint) {
  return Error{Error::Code::kUsage, std::move(what), "", std::move(hint)};
}

// A floor that the run undercuts is no floor of this run.
void hold_against_run(StepFloor& out) {
  constexpr double kRounding = 0.97;  // a trace's clock, and caches that keep a little
  for (const Distance& row : out.distance) {
    Nanos least = 0;  // experts may be hit less evenly than the floor takes it
    for (const known::FloorPart& part : out.floor.parts) {
      if (std::count(row.components.begin(), row.components.end(), part.component) > 0)
        least += part.least;
    }
    const bool faster = row.measured > 0 &&
                        static_cast<double>(row.measured) < kRounding * static_cast<double>(least);
    const bool foreign = out.given.model.experts == 0 &&
                         std::count(row.owners.begin(), row.owners.end(), Owner::kMoeGemm) > 0;
    if (!faster && !foreign) continue;
    out.contradicted = true;
    out.floor.notes.insert(
        out.floor.notes.begin(),
        fmt::format(
            "{}: {}; the model, batch, context, types or number of GPUs given are not those "
            "of this run",
            row.name,
            faster ? "measured below the floor" : "the run has expert kernels, the model none"));
  }
}

}  // namespace

std::vector<Distance> distances(const known::Floor& floor, const std::vector<BudgetRow>& budget) {
  const bool experts_apart = measured(budget, {Owner::kMoeGemm}) > 0;
  std::vector<Distance> all;
  for (const Rule& rule : rules(experts_apart)) {
    Distance row;
    row.name = rule.name;
    for (const known::FloorPart& part : floor.parts) {
      if (std::find(rule.components.begin(), rule.components.end(), part.component) ==
          rule.components.end())
        continue;
      row.components.push_back(part.component);
      row.floor += part.ns;
    }
    for (const BudgetRow& spent : budget) {
      const auto& of = rule.owners;
      const bool mine = std::find(of.begin(), of.end(), spent.owner) != of.end();
      if (mine && spent.ns_per_step > 0) row.owners.push_back(spent.owner);
    }
    row.measured = measured(budget, rule.owners);
    if (row.components.size() > 1) row.together = rule.together;
    if (row.floor > 0 || row.measured > 0) all.push_back(std::move(row));
  }
  return all;
}

Result<StepFloor> floor_of_run(const Evidence& evidence, const FloorWishes& wishes) {
  const run::Run& run = *evidence.run;
  if (!evidence.known.model) return unknown("no model given", "--model CONFIG|NAME");
  if (!run.gpu) return unknown("the trace names no GPU of the table", "--gpu NAME");
  StepFloor out;
  out.given.model = *evidence.known.model;
  out.given.gpu = run.gpu->gpu;
  if (evidence.peak.gbps > 0) out.given.gpu.peak_gbps = evidence.peak.gbps;
  out.given.deployment = evidence.known.deployment;
  known::Deployment& deployment = out.given.deployment;
  if (!wishes.tp_given && measured(evidence.budget, {Owner::kComm, Owner::kCommWait}) > 0) {
    const auto world = run.trace->info.world_size;
    return unknown("the run communicates, and how many GPUs share a layer is not known",
                   world ? fmt::format("--tp N; the trace is one of {} ranks", *world) : "--tp N");
  }
  const bool decodes = run.kind == run::StepKind::kDecode || run.kind == run::StepKind::kVerify;
  if (!wishes.batch && (!evidence.steps.tokens || *evidence.steps.tokens <= 0 || !decodes)) {
    return unknown("the trace does not tell how many tokens a decode step works on", "--batch N");
  }
  deployment.batch = wishes.batch
                         ? wishes.batch
                         : std::optional(*evidence.steps.tokens *
                                         std::max<std::int64_t>(1, deployment.attention_dp));
  out.given.context = wishes.context;
  if (!out.given.context && deployment.active_tokens) {
    out.given.context = std::max<std::int64_t>(1, *deployment.active_tokens / *deployment.batch);
  }
  TRY(out.floor, known::floor_of(out.given));
  out.distance = distances(out.floor, evidence.budget);
  out.measured = evidence.steps.mean;
  hold_against_run(out);
  return out;
}

}  // namespace culprit::evidence
