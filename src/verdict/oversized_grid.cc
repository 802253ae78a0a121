// oversized-grid: a kernel of one block per row is launched for the most tokens a step may have,
// however few it has. Blocks that find no row still start and end.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "known/launch_geometry.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using evidence::KernelFigures;
using known::Owner;

constexpr double kLeastShare = 0.02;
// Rows of a token at most: one per head, of 128 heads and their keys. Beyond, blocks are for nobody.
constexpr std::int64_t kMostRowsPerToken = 256;

// Kernels that give a block to each token, or to each token and head.
bool works_by_rows(const run::Group& group) {
  constexpr std::array kinds{Owner::kNorm, Owner::kActivation, Owner::kKvStore,
                             Owner::kRope, Owner::kQuantize,   Owner::kRouter};
  return group.device_kind == store::DeviceKind::kKernel &&
         group.info.grid_rule != known::GridRule::kLinear &&
         std::find(kinds.begin(), kinds.end(), group.kind) != kinds.end();
}

void accuse(Evidence& evidence, std::size_t index, std::int64_t tokens, Verdict& verdict) {
  const std::array kernels{index};
  Suspect suspect = accuse_kernels(evidence, "oversized-grid", kernels);
  const KernelFigures kernel = evidence.kernels[index];
  const run::Group& group = evidence.run->groups[kernel.group.index];
  suspect.confidence = Confidence::kLikely;
  suspect.claim = fmt::format(
      "{} runs {} blocks, one a row, where the step has {} {}: most of them find no row, {} a call",
      group.info.short_name, text::count(group.grid[0]), text::count(tokens),
      tokens == 1 ? "token" : "tokens", text::duration(kernel.avg_ns, true));
  // With as many blocks as rows it takes what the run's shortest kernel takes, at best.
  const auto shortest = std::min_element(
      evidence.kernels.begin(), evidence.kernels.end(),
      [](const KernelFigures& a, const KernelFigures& b) { return a.avg_ns < b.avg_ns; });
  const double least = static_cast<double>(shortest->avg_ns) / static_cast<double>(kernel.avg_ns);
  set_cost(evidence, {scaled(evidence, groups_of(evidence, kernels), least), {}}, suspect);
  suspect.facts.push_back(evidence.add(
      "oversized_grid.blocks", static_cast<double>(group.grid[0]), "block", "grid x",
      evidence::sql_query(fmt::format("SELECT grid_x FROM kernels WHERE kernel = {}", index))));
  suspect.disproved_if = "the time stays the same with a lower limit of tokens or requests";
  suspect.fix = "launch for the rows that the step has, or for the captured batch of its graph";
  suspect.alternatives = {
      "lower the limit the grid follows (--max-num-seqs, --max-running-requests)",
      "a persistent kernel: as many blocks as the device holds, each over rows"};
  verdict.suspects.push_back(std::move(suspect));
}

void examine(Evidence& evidence, Verdict& verdict) {
  const evidence::StepStats& steps = evidence.steps;
  // Tokens that were read off a norm's grid would explain that grid by itself.
  if (steps.tokens.value_or(0) <= 0 || steps.tokens_how != "mark") return;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    const KernelFigures& kernel = evidence.kernels[i];
    const run::Group& group = evidence.run->groups[kernel.group.index];
    if (kernel.share < kLeastShare || accused(verdict, i) || !works_by_rows(group)) continue;
    if (group.grid[0] / kMostRowsPerToken < *steps.tokens) continue;
    accuse(evidence, i, *steps.tokens, verdict);
  }
}

}  // namespace

const Judge kOversizedGrid{
    {"oversized-grid", "a kernel of one block per row, launched for far more rows than a step has",
     "the grid, and the batch in the step marks", "the time stays with a lower limit of tokens"},
    examine};

}  // namespace culprit::verdict
