// What became of kernels that are not the same on both sides: one that became several, one that became
// another, more calls of one; and, at last, whatever took another time without a reason that the
// recordings tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "compare/causes.h"

namespace culprit::compare {
namespace {

using known::Owner;
using verdict::Confidence;

std::string names_of(const Case& c, const std::vector<std::size_t>& rows, bool after) {
  std::string out;
  std::size_t count = 0;
  for (const std::size_t r : rows) {
    const auto& side = after ? c.rows.rows[r].shown.after : c.rows.rows[r].shown.before;
    if (!side) continue;
    if (++count <= 3) out += (out.empty() ? "" : ", ") + side->short_name;
  }
  if (count > 3) out += fmt::format(" and {} more", count - 3);
  return out;
}

double calls_of(const Row& row) {
  return row.shown.after ? row.shown.after->calls_per_step : row.shown.before->calls_per_step;
}

const std::string& full_name(const KernelChange& kernel) {
  return kernel.after ? kernel.after->name : kernel.before->name;
}

std::string where_text(const Row& row) {
  const std::string calls = fmt::format("{} calls a step", text::amount(calls_of(row)));
  return row.shown.place.empty() ? calls : calls + ", " + row.shown.place;
}

void examine_region(Case& c, const Region& region) {
  const std::size_t a = region.kernels_before, b = region.kernels_after;
  if (std::min(a, b) != 1 || std::max(a, b) < 2) return;
  std::vector<std::size_t> rows;
  for (const std::size_t r : region.rows)
    if (c.taken[r] == 0) rows.push_back(r);
  if (rows.size() != region.rows.size()) return;
  Cause cause = c.cause_of("fusion-lost", rows);
  cause.confidence = Confidence::kLikely;
  const bool lost = b > a;
  cause.claim = fmt::format("{} kernels stand where one stood {}: {} {} {} ({})", std::max(a, b),
                            lost ? "before" : "afterwards", names_of(c, rows, false),
                            lost ? "fell apart into" : "became", names_of(c, rows, true),
                            where_text(c.rows.rows[rows.front()]));
  cause.disproved_if =
      "the fused kernel was switched off on purpose, for its result or for another backend";
  cause.fix = lost ? "bring the fused kernel back: look for a flag, a dtype or a shape for which "
                     "it is no longer chosen"
                   : "nothing: one kernel does what several did";
  cause.alternatives = {
      "torch.compile or a fusion pass that no longer runs for this model",
      "a fallback for this GPU or dtype: the server's log names the chosen backend"};
  c.enter(std::move(cause));
}

void accuse_replaced(Case& c, std::size_t r) {
  const std::vector<std::size_t> rows{r};
  const Row& row = c.rows.rows[r];
  const KernelSide &a = *row.shown.before, &b = *row.shown.after;
  Cause cause = c.cause_of("replaced-kernel", rows);
  cause.confidence = Confidence::kLikely;
  std::string grids;
  if (a.grid != store::Dim3{} && b.grid != store::Dim3{} && a.grid != b.grid)
    grids = fmt::format(", grid [{}] → [{}]", fmt::join(a.grid, ","), fmt::join(b.grid, ","));
  cause.claim = fmt::format("the {} kernel is another one: {} → {}, {} a call{} ({})",
                            known::owner_name(row.shown.role), a.short_name, b.short_name,
                            before_after(a.avg_ns, b.avg_ns), grids, where_text(row));
  cause.disproved_if = "the old kernel takes as long on this load, forced by its backend's flag";
  cause.fix = fmt::format(
      "choose the {} backend that runs the other kernel, or report this one to its makers",
      known::owner_name(row.shown.role));
  cause.alternatives = {
      "a library update chose it: pin the version that was recorded before",
      "a shape or dtype for which the old kernel is not built: the server's log says why"};
  c.enter(std::move(cause));
}

struct Wording {
  std::string id, claim, disproved_if, fix;
  std::vector<std::string> alternatives;
};

Wording wording_of(const Row& row) {
  const Change change = row.shown.change;
  const std::string_view role = known::owner_name(row.shown.role);
  if (change == Change::kNew || change == Change::kGone) {
    return {"new-kernel",
            fmt::format("{} {} runs {} only ({})", role, shown_name(row.shown),
                        change == Change::kNew ? "afterwards" : "before", where_text(row)),
            "the other recording has it under another name or in another step",
            "find who launches it: `culprit explain TRACE --kernel NAME` on that recording",
            {"a feature that was switched on or off: logprobs, sampling, a check"}};
  }
  if (change == Change::kMoreCalls || change == Change::kFewerCalls) {
    return {"more-calls",
            fmt::format("{} {} is called {} times a step, {} before; {} a call", role,
                        shown_name(row.shown), text::amount(row.shown.after->calls_per_step),
                        text::amount(row.shown.before->calls_per_step),
                        before_after(row.shown.before->avg_ns, row.shown.after->avg_ns)),
            "the work is split over more calls of the same sum",
            "find the line that launches them: `culprit sources TRACE`",
            {"more layers, more draft tokens, or a smaller chunk"}};
  }
  return {
      "slower-kernel",
      fmt::format(
          "{} {} takes {} a call, as often and under the same name{}", role, shown_name(row.shown),
          before_after(row.shown.before->avg_ns, row.shown.after->avg_ns),
          row.shown.change == Change::kLargerGrid || row.shown.change == Change::kSmallerGrid
              ? ", on another grid"
              : ""),
      row.shown.role == Owner::kAttention ? "the contexts were of the same length"
                                          : "it takes the same time alone, on the same input",
      row.shown.role == Owner::kAttention ? "record both at the same context length"
                                          : "time it alone on both versions with the same input",
      {"a longer context, other routing, other values of the input",
       "memory that another stream or process uses at the same time"}};
}

}  // namespace

void judge_load(Case& c) {
  const std::string load = c.load();
  if (load.empty()) return;
  if (c.same_load) return c.rule_out("load", "the steps have more to do", "the batch is " + load);
  const auto rows =
      c.free_rows([](const Row& row) { return row.kept() && row.shown.change != Change::kSame; });
  Cause cause = c.cause_of("load", rows);
  cause.confidence = Confidence::kLikely;
  cause.claim = fmt::format(
      "the steps do not have the same to do: the batch is {}; {} kernels that are the "
      "same on both sides follow it",
      load, rows.size());
  cause.disproved_if = "the difference stays with the same batch on both sides";
  cause.fix = "record both sides at one batch, then compare again";
  cause.alternatives = {"pick steps of one batch with --steps"};
  c.enter(std::move(cause));
}

void judge_fusion(Case& c) {
  for (const Region& region : c.rows.regions) examine_region(c, region);
  if (c.found("fusion-lost")) return;
  c.rule_out("fusion-lost", "a fused kernel fell apart",
             fmt::format("{} kernels a step", counts_text(c.comparison.before.kernels_per_step,
                                                          c.comparison.after.kernels_per_step)));
}

void judge_device(Case& c) {
  const std::string &a = c.comparison.before.device, &b = c.comparison.after.device;
  if (a.empty() || b.empty() || a == b) return;
  // What both sides do, by the same kernel or by the one that this device gets for it. More calls are
  // no matter of the device.
  const auto rows = c.free_rows([](const Row& row) {
    const Change change = row.shown.change;
    const bool counted = change == Change::kMoreCalls || change == Change::kFewerCalls;
    return row.shown.before && row.shown.after && !counted && change != Change::kSame &&
           !known::is_comm(row.shown.role);
  });
  Cause cause = c.cause_of("other-device", rows);
  cause.confidence = Confidence::kLikely;
  cause.claim = fmt::format(
      "recorded on {} before, on {} after: {} kernels that do the same work take another time", a,
      b, rows.size());
  cause.disproved_if = "the difference stays on one device for both sides";
  cause.fix = "record both sides on the same kind of device";
  cause.alternatives = {"`culprit floor` says what each device allows"};
  c.enter(std::move(cause));
}

void judge_replaced(Case& c) {
  const auto other = [](const Row& row) { return row.shown.change == Change::kReplaced; };
  for (const std::size_t r : c.free_rows(other)) accuse_replaced(c, r);
  const auto rest = c.free_rows(other);  // each too small, together perhaps not
  if (rest.size() > 1) {
    Cause cause = c.cause_of("replaced-kernel", rest);
    cause.confidence = Confidence::kLikely;
    cause.claim = fmt::format("{} kernels are other ones at the same places", rest.size());
    cause.disproved_if = "the old kernels take as long on this load";
    cause.fix = "compare the versions of the libraries on both sides";
    c.enter(std::move(cause));
  }
  if (c.found("replaced-kernel")) return;
  std::size_t kept = 0;
  for (const Row& row : c.rows.rows) kept += row.kept() ? 1U : 0U;
  c.rule_out("replaced-kernel", "another kernel does the work",
             fmt::format("{} of {} kernels have the same name at the same place on both sides",
                         kept, c.rows.rows.size()));
}

void judge_rest(Case& c) {
  // Communication has its judge; the copies of one kernel on several grids are one cause.
  const auto rows = c.free_rows([](const Row& row) {
    const Change change = row.shown.change;
    return change != Change::kSame && change != Change::kReplaced &&
           !known::is_comm(row.shown.role);
  });
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> alike;
  for (const std::size_t r : rows) {
    const Wording wording = wording_of(c.rows.rows[r]);
    alike[{wording.id, full_name(c.rows.rows[r].shown)}].push_back(r);
  }
  for (const auto& [key, of_name] : alike) {
    const Wording wording = wording_of(c.rows.rows[of_name.front()]);
    Cause cause = c.cause_of(wording.id, of_name);
    cause.confidence = Confidence::kPossible;
    cause.claim = wording.claim;
    cause.disproved_if = wording.disproved_if;
    cause.fix = wording.fix;
    cause.alternatives = wording.alternatives;
    c.enter(std::move(cause));
  }
}

}  // namespace culprit::compare
