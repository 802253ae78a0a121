// Ranks side by side: of one file that holds several, or of files of their own.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "report/grid.h"
#include "report/page.h"

namespace culprit::report {
namespace {

using evidence::RankFigures;
using evidence::Ranks;

constexpr int kWide = 100;  // columns from which more is shown

bool met(const Ranks& ranks, std::size_t index) {
  return ranks.skew.known() && ranks.skew.ranks[index].meetings > 0;
}

// Late ranks and the one shown first: rows may be few.
std::vector<std::size_t> order_of(const Ranks& ranks) {
  std::vector<std::size_t> order(ranks.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto late = [&](std::size_t i) {
    return i == ranks.headline ||
           std::find(ranks.skew.late.begin(), ranks.skew.late.end(), i) != ranks.skew.late.end();
  };
  std::stable_partition(order.begin(), order.end(), late);
  return order;
}

std::string remark(const Ranks& ranks, std::size_t index) {
  const RankFigures& rank = ranks.all[index];
  if (rank.refused) return "no figures: " + rank.refused->note_code;
  const bool late =
      std::find(ranks.skew.late.begin(), ranks.skew.late.end(), index) != ranks.skew.late.end();
  if (index != ranks.headline) return late ? "late" : "";
  return late ? "late; this answer" : "this answer";
}

}  // namespace

void add_rank_of_answer(Page& page, const Answer& answer) {
  const Ranks& ranks = answer.ranks;
  if (ranks.all.empty()) return;
  page.paragraph(
      fmt::format("about {}, which {} of the {} in the {}",
                  evidence::rank_name(ranks.all[ranks.headline], ranks),
                  ranks.skew.late.empty() ? "works longest in a step" : "the others wait for,",
                  text::count(static_cast<std::int64_t>(ranks.all.size())),
                  answer.inputs.empty() ? "file" : "input"),
      0, 2);
}

void add_skipped(Page& page, const FleetFigures& fleet, int rows) {
  if (fleet.skipped.empty()) return;
  page.title("left out");
  const auto all = std::ssize(fleet.skipped);
  const auto shown = page.options().all ? all : std::min<std::ptrdiff_t>(all, rows);
  for (std::ptrdiff_t i = 0; i < shown; ++i) {
    const FleetFigures::Skipped& skipped = fleet.skipped[static_cast<std::size_t>(i)];
    page.paragraph(fmt::format("{}: {}", page.drop_folders(skipped.path, page.options().width / 2),
                               skipped.why),
                   2, 4);
  }
  if (shown < all) page.paragraph(fmt::format("{} more: --all", text::count(all - shown)), 2, 4);
}

void add_ranks(Page& page, const Answer& answer, int rows) {
  const Ranks& ranks = answer.ranks;
  if (ranks.all.empty()) return;
  Grid grid;
  grid.columns = {{"rank", "", CellKind::kText},
                  {"per step", "", CellKind::kTime},
                  {"works", "", CellKind::kTime},
                  {"comm", "", CellKind::kTime},
                  {"waits", "", CellKind::kTime},
                  {"last", "", CellKind::kShare},
                  {"clock", "", CellKind::kTime, false, kWide},
                  {"kernels", "", CellKind::kCount, false, kWide},
                  {"", "", CellKind::kText}};
  for (const std::size_t i : order_of(ranks)) {
    const RankFigures& rank = ranks.all[i];
    const auto time = [&](Nanos ns) { return rank.refused ? Cell() : Cell(ns); };
    const bool known = !rank.refused && met(ranks, i);
    const evidence::RankSkew* skew = known ? &ranks.skew.ranks[i] : nullptr;
    grid.rows.push_back(
        {evidence::rank_name(rank, ranks), time(rank.steps.mean), time(rank.work_ns_per_step),
         time(rank.comm_ns_per_step), known ? Cell(rank.wait_ns_per_step) : Cell(),
         skew ? Cell(static_cast<double>(skew->last) / static_cast<double>(skew->meetings))
              : Cell(),
         skew ? Cell(skew->clock.offset) : Cell(), rank.refused ? Cell() : Cell(rank.kernels),
         remark(ranks, i)});
  }
  grid.rest_label = "more: --all";
  page.blank();
  page.lines(grid_lines(grid, page.options(), rows));
}

}  // namespace culprit::report
