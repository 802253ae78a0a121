// Suspects that the verdict names on one side, or whose kernels take another time on the other side.
// Suspects of idle time have judges of their own here (host.cc).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {
namespace {

using verdict::Suspect;

// Their name says what the kernel does, so that it is the cause whatever became of the kernel. Other
// suspects say how well a kernel does it: a kernel that was replaced is a cause of its own.
constexpr std::array<std::string_view, 7> kByNature{
    "whole-pool-cast", "whole-pool-copy", "weight-dequant", "batch-cast",
    "layout-copy",     "repeated-read",   "small-kernels"};

bool by_nature(std::string_view id) {
  return std::find(kByNature.begin(), kByNature.end(), id) != kByNature.end();
}

const Suspect* suspect_with(const verdict::Verdict& verdict, std::string_view id) {
  for (const Suspect& suspect : verdict.suspects)
    if (suspect.id == id) return &suspect;
  return nullptr;
}

bool has_kernel(const Suspect* suspect, const std::vector<std::size_t>& kernels) {
  return suspect != nullptr && std::any_of(kernels.begin(), kernels.end(), [&](std::size_t kernel) {
           return std::find(suspect->kernels.begin(), suspect->kernels.end(), kernel) !=
                  suspect->kernels.end();
         });
}

void examine(Case& c, const std::string& id) {
  const Suspect* before = suspect_with(c.before.verdict, id);
  const Suspect* after = suspect_with(c.after.verdict, id);
  if (before != nullptr && after != nullptr && !by_nature(id)) return;
  const auto rows = c.free_rows([&](const Row& row) {
    const bool its = has_kernel(before, row.before_kernels) || has_kernel(after, row.after_kernels);
    return its && (by_nature(id) || row.shown.change != Change::kReplaced);
  });
  if (rows.empty()) return;
  const Suspect& larger =
      after == nullptr                                                                 ? *before
      : before == nullptr || after->exposed_ns_per_step >= before->exposed_ns_per_step ? *after
                                                                                       : *before;
  Cause cause = c.cause_of(id, rows);
  cause.confidence = larger.confidence;
  const std::string_view where = before == nullptr  ? "only in the recording after: "
                                 : after == nullptr ? "only in the recording before: "
                                                    : "on both sides, and it changed: ";
  cause.claim =
      fmt::format("{}{} ({} a step)", where, larger.claim,
                  before_after(before ? before->ns_per_step : 0, after ? after->ns_per_step : 0));
  if (!larger.where.empty()) cause.where = larger.where;
  cause.tensor = larger.tensor;
  cause.disproved_if = larger.disproved_if;
  cause.fix = larger.fix;
  cause.alternatives = larger.alternatives;
  c.enter(std::move(cause));
}

}  // namespace

void judge_suspects(Case& c) {
  std::vector<std::pair<Nanos, std::string>> ids;
  for (const verdict::Verdict* verdict : {&c.before.verdict, &c.after.verdict}) {
    for (const Suspect& suspect : verdict->suspects) {
      if (suspect.kernels.empty()) continue;
      const auto known = std::find_if(ids.begin(), ids.end(),
                                      [&](const auto& each) { return each.second == suspect.id; });
      if (known == ids.end())
        ids.emplace_back(-suspect.exposed_ns_per_step, suspect.id);
      else
        known->first = std::min(known->first, -suspect.exposed_ns_per_step);
    }
  }
  std::sort(ids.begin(), ids.end());  // the largest first, ties by name: the same from both sides
  for (const auto& [cost, id] : ids) examine(c, id);
}

}  // namespace culprit::compare
