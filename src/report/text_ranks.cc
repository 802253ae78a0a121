// Ranks side by side, where one file holds several.
#include <fmt/format.h>

#include "report/grid.h"
#include "report/page.h"

namespace culprit::report {

void add_rank_of_answer(Page& page, const Answer& answer) {
  const evidence::Ranks& ranks = answer.ranks;
  if (ranks.all.empty()) return;
  page.paragraph(fmt::format("about {}, which works longest in a step of the {} in the file",
                             evidence::rank_name(ranks.all[ranks.headline], ranks),
                             text::count(static_cast<std::int64_t>(ranks.all.size()))),
                 0, 2);
}

void add_ranks(Page& page, const Answer& answer, int rows) {
  const evidence::Ranks& ranks = answer.ranks;
  if (ranks.all.empty()) return;
  Grid grid;
  grid.columns = {{"rank", "", CellKind::kText},     {"per step", "", CellKind::kTime},
                  {"works", "", CellKind::kTime},    {"comm", "", CellKind::kTime},
                  {"kernels", "", CellKind::kCount}, {"", "", CellKind::kText}};
  for (std::size_t i = 0; i < ranks.all.size(); ++i) {
    const evidence::RankFigures& rank = ranks.all[i];
    const bool usable = !rank.refused;
    const auto time = [&](Nanos ns) { return usable ? Cell(ns) : Cell(); };
    grid.rows.push_back({evidence::rank_name(rank, ranks), time(rank.steps.mean),
                         time(rank.work_ns_per_step), time(rank.comm_ns_per_step),
                         usable ? Cell(rank.kernels) : Cell(),
                         i == ranks.headline ? std::string("this answer")
                         : usable            ? std::string()
                                             : "no figures: " + rank.refused->note_code});
  }
  grid.rest_label = "more: --all";
  page.blank();
  page.lines(grid_lines(grid, page.options(), rows));
}

}  // namespace culprit::report
