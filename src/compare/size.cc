// Cost that follows a limit and not the load: the same kernel, launched as often for the same batch,
// works on more: copies and casts on a larger pool, others on a grid made for more rows.
// Public case: tenstorrent/tt-xla#4197.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {
namespace {

using known::Owner;

constexpr double kGrown = 1.25;   // a size, at least
constexpr double kFollows = 0.5;  // time of copies grows by the size to this power, at least
constexpr double kLonger = 1.1;   // time of other kernels, at least: empty blocks are cheap

struct Size {
  double before = 0, after = 0;
  std::string_view unit;  // "elements", "blocks"
  double ratio() const { return after / before; }
};

double blocks(const KernelSide& side) { return 1.0 * side.grid[0] * side.grid[1] * side.grid[2]; }

// How much a call works on, where both sides tell it in the same unit.
std::optional<Size> size_of(const Row& row) {
  const KernelSide &a = *row.shown.before, &b = *row.shown.after;
  if (!a.dims.empty() && !b.dims.empty() && a.elements && b.elements)
    return Size{static_cast<double>(*a.elements), static_cast<double>(*b.elements), "elements"};
  if (blocks(a) > 0 && blocks(b) > 0) return Size{blocks(a), blocks(b), "blocks"};
  if (a.bytes && b.bytes && *a.bytes > 0 && *b.bytes > 0)
    return Size{static_cast<double>(*a.bytes), static_cast<double>(*b.bytes), "bytes"};
  return std::nullopt;
}

bool moves_memory(const Row& row) {
  const Owner role = row.shown.role;
  return role == Owner::kCopy || role == Owner::kCast || role == Owner::kMemcpy;
}

bool follows(const Row& row) {
  if (!row.kept()) return false;
  const std::optional<Size> size = size_of(row);
  const auto before = static_cast<double>(row.shown.before->avg_ns);
  const auto after = static_cast<double>(row.shown.after->avg_ns);
  if (!size || size->before <= 0 || size->after <= 0 || before <= 0 || after <= 0) return false;
  const double grown = std::log(size->ratio()), longer = std::log(after / before);
  if (std::fabs(grown) < std::log(kGrown) || (grown > 0) != (longer > 0)) return false;
  return moves_memory(row) ? longer / grown >= kFollows : std::fabs(longer) >= std::log(kLonger);
}

// "80,000 of [80000, 8, 128]": what grew, in rows where the tensor is known.
std::string growth_text(const Row& row, const Size& size) {
  const auto &a = row.shown.before->dims, &b = row.shown.after->dims;
  if (!a.empty() && a.size() == b.size() && a.front() > 0 && a.front() != b.front())
    return fmt::format("{} → {} rows ({})", text::count(a.front()), text::count(b.front()),
                       times_text(static_cast<double>(b.front()) / static_cast<double>(a.front())));
  return fmt::format("{} → {} {} ({})", text::amount(size.before), text::amount(size.after),
                     size.unit, times_text(size.ratio()));
}

std::string attention_text(const Case& c) {
  const BudgetDelta* attention = c.budget(Owner::kAttention);
  if (attention == nullptr || attention->before <= 0) return {};
  return fmt::format("attention {}", before_after(attention->before, attention->after));
}

bool attention_unchanged(const Case& c) {
  constexpr double kAlike = 0.05;
  const BudgetDelta* attention = c.budget(Owner::kAttention);
  if (attention == nullptr) return false;
  return std::abs(static_cast<double>(attention->delta())) <=
         kAlike * static_cast<double>(std::max(attention->before, attention->after));
}

void set_tensor(const Row& row, Cause& cause) {
  const bool grew = row.delta() >= 0;  // the larger one, whichever side it is on
  const KernelSide& side = grew ? *row.shown.after : *row.shown.before;
  if (side.dims.empty()) return;
  std::int64_t elements = side.elements.value_or(0);
  cause.tensor = verdict::TensorMatch{"kv_pool", side.dims, {}, elements, "inferred"};
}

void accuse_pool(Case& c, std::string_view id, std::vector<std::size_t> rows) {
  if (rows.empty()) return;
  Cause cause = c.cause_of(std::string(id), rows);
  const Row& first = c.rows.rows[rows.front()];
  const std::string attention = attention_text(c);
  double calls = 0;
  for (const std::size_t r : rows) calls += c.rows.rows[r].shown.after->calls_per_step;
  cause.confidence = attention_unchanged(c) && !first.shown.after->dims.empty()
                         ? verdict::Confidence::kCertain
                         : verdict::Confidence::kLikely;
  cause.claim = fmt::format(
      "{} {} a step whose size follows the KV pool, not the load: {}, {} a call, with batch {}{}",
      text::amount(calls), id == "whole-pool-cast" ? "casts" : "copies",
      growth_text(first, *size_of(first)),
      before_after(first.shown.before->avg_ns, first.shown.after->avg_ns), c.load(),
      attention.empty() ? "" : "; " + attention);
  set_tensor(first, cause);
  cause.disproved_if =
      "the kernels take as long with the pool of the other side (--max-total-tokens)";
  cause.fix = id == "whole-pool-cast"
                  ? "gather the active entries of the pool, then convert only those"
                  : "update the pool in place: write the new rows where they belong";
  cause.alternatives = {"until then: a pool no larger than the load needs",
                        "attention that reads the pool as it is stored"};
  c.enter(std::move(cause));
}

void accuse_grid(Case& c, std::vector<std::size_t> rows) {
  if (rows.empty()) return;
  Cause cause = c.cause_of("oversized-grid", rows);
  const Row& first = c.rows.rows[rows.front()];
  const Size size = *size_of(first);
  // Attention follows its context as well, which is load that no mark tells.
  cause.confidence = first.shown.role == Owner::kAttention ? verdict::Confidence::kPossible
                                                           : verdict::Confidence::kLikely;
  cause.claim = fmt::format(
      "{} is launched for another limit, not for another load: {}, {} a call, with batch {}",
      shown_name(first.shown), growth_text(first, size),
      before_after(first.shown.before->avg_ns, first.shown.after->avg_ns), c.load());
  cause.disproved_if =
      "the grid stays as it is with the other side's limits (--max-num-seqs, "
      "--max-running-requests)";
  cause.fix = "launch for the rows that the step has, or for the captured batch of its graph";
  cause.alternatives = {"put the limit back that the grid follows",
                        "a longer context: attention may split it over more blocks"};
  c.enter(std::move(cause));
}

}  // namespace

void judge_size(Case& c) {
  if (!c.same_load || c.load().empty()) return;
  const auto free = c.free_rows(follows);
  std::vector<std::size_t> casts, copies, others;
  for (const std::size_t r : free) {
    const Row& row = c.rows.rows[r];
    if (known::is_comm(row.shown.role)) continue;  // follows its messages
    (!moves_memory(row) ? others : row.shown.role == Owner::kCast ? casts : copies).push_back(r);
  }
  accuse_pool(c, "whole-pool-cast", std::move(casts));
  accuse_pool(c, "whole-pool-copy", std::move(copies));
  accuse_grid(c, std::move(others));
}

}  // namespace culprit::compare
