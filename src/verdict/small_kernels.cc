// small-kernels: rows of kernels of a few microseconds each, one after the other, that one fused
// kernel would do. Each costs its start and its end, whatever it computes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "verdict/judges.h"

namespace culprit::verdict {
namespace {

using evidence::Evidence;
using known::Owner;

constexpr Nanos kSmall = 5'000;       // a kernel that does next to nothing takes 1 to 3 us
constexpr std::int64_t kRow = 3;      // so many in a row are worth a fused kernel
constexpr double kLeastShare = 0.08;  // of the step, saved
constexpr double kMostIdle = 0.3;     // beyond, the host is the bound and a graph the cure

// Kernels that a compiler or a hand-written kernel fuses: one value in, one value out, or one row.
bool fuses(Owner kind) {
  constexpr Owner kinds[] = {Owner::kElementwise, Owner::kNorm,     Owner::kRope,
                             Owner::kActivation,  Owner::kReduce,   Owner::kCast,
                             Owner::kCopy,        Owner::kQuantize, Owner::kMemset,
                             Owner::kOtherKernel, Owner::kRouter};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

struct Rows {
  std::int64_t rows = 0, kernels = 0;  // in all
  Nanos time = 0, saved = 0;  // of the kernels; what a fused kernel as long as the longest saves
  std::vector<Nanos> time_of, saved_of;  // by group
};

class Search {
 public:
  explicit Search(const run::Run& run) : run_(run) {
    rows_.time_of.resize(run.groups.size());
    rows_.saved_of.resize(run.groups.size());
  }
  Rows find() {
    for (const run::Step& step : run_.steps) {
      if (!step.used) continue;
      for (std::int64_t i = step.first; i < step.last; ++i) see(i);
      close();
    }
    return std::move(rows_);
  }

 private:
  void see(std::int64_t i) {
    const run::Activity& a = run_.activities[static_cast<std::size_t>(i)];
    if (a.end - a.begin > kSmall || !fuses(a.kind)) return close();
    row_.push_back(&a);
  }
  void close() {
    if (static_cast<std::int64_t>(row_.size()) >= kRow) {
      ++rows_.rows;
      const auto longest = std::max_element(
          row_.begin(), row_.end(),
          [](const auto* a, const auto* b) { return a->end - a->begin < b->end - b->begin; });
      for (auto each = row_.begin(); each != row_.end(); ++each) {
        const Nanos time = (*each)->end - (*each)->begin;
        ++rows_.kernels;
        rows_.time += time;
        rows_.time_of[(*each)->group.index] += time;
        if (each == longest) continue;
        rows_.saved += time;
        rows_.saved_of[(*each)->group.index] += time;
      }
    }
    row_.clear();
  }

  const run::Run& run_;
  std::vector<const run::Activity*> row_;
  Rows rows_;
};

evidence::Change fused(const Evidence& evidence, const Rows& rows) {
  evidence::Change change;
  change.scale.assign(evidence.run->groups.size(), 1);
  for (const evidence::KernelFigures& kernel : evidence.kernels) {
    const Nanos saved = rows.saved_of[kernel.group.index];
    const double all = static_cast<double>(kernel.ns_per_step * evidence.steps.used);
    if (saved > 0 && all > 0)
      change.scale[kernel.group.index] = std::max(0.0, 1 - static_cast<double>(saved) / all);
  }
  return change;
}

void examine(Evidence& evidence, Verdict& verdict) {
  const evidence::StepStats& steps = evidence.steps;
  if (steps.used == 0 || steps.mean <= 0) return;
  const double idle = 1 - static_cast<double>(steps.busy_ns) / static_cast<double>(steps.mean);
  if (idle > kMostIdle) return;
  const Rows rows = Search(*evidence.run).find();
  const Nanos saved = rows.saved / steps.used;
  if (static_cast<double>(saved) < kLeastShare * static_cast<double>(steps.mean)) return;
  std::vector<std::size_t> kernels;
  for (std::size_t i = 0; i < evidence.kernels.size(); ++i) {
    if (rows.saved_of[evidence.kernels[i].group.index] > 0 && !accused(verdict, i))
      kernels.push_back(i);
  }
  if (kernels.empty()) return;
  Suspect suspect = accuse_kernels(evidence, "small-kernels", kernels);
  suspect.ns_per_step = rows.time / steps.used;
  suspect.exposed_ns_per_step = std::min(suspect.exposed_ns_per_step, saved);
  suspect.confidence = Confidence::kLikely;
  suspect.claim = fmt::format(
      "{} kernels a step of {} each run in rows of {}: fused to one kernel a row they would save "
      "{}",
      text::count(rows.kernels / steps.used), text::duration(rows.time / rows.kernels, true),
      text::amount(static_cast<double>(rows.kernels) / static_cast<double>(rows.rows)),
      text::duration(saved, true));
  set_cost(evidence, {fused(evidence, rows), {}}, suspect);
  suspect.facts.push_back(evidence.add(
      "small_kernels.in_rows", static_cast<double>(rows.kernels) / static_cast<double>(steps.used),
      "1", "kernels of at most 5 us with two or more such neighbours, per step",
      own_query("small_kernels.in_rows")));
  suspect.facts.push_back(evidence.add("small_kernels.saved_ns", static_cast<double>(saved), "ns",
                                       "their time without the longest of each row, per step",
                                       own_query("small_kernels.saved_ns")));
  suspect.disproved_if = "a fused kernel takes as long as the row of kernels it replaces";
  suspect.fix =
      "fuse each row: torch.compile, or the engine's fused norm, rope, quantisation kernels";
  suspect.alternatives = {
      "SGLang: --enable-torch-compile; vLLM: leave out --enforce-eager and custom_ops=none",
      "a larger batch: the same kernels serve more tokens"};
  verdict.suspects.push_back(std::move(suspect));
}

}  // namespace

const Judge kSmallKernels{
    {"small-kernels", "rows of kernels of at most 5 us that one fused kernel would do",
     "kernel names and times", "a fused kernel takes as long as the row"},
    examine};

}  // namespace culprit::verdict
