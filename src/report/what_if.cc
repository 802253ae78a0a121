// The answer of `culprit whatif` as text.
#include <fmt/format.h>

#include "report/grid.h"
#include "report/page.h"
#include "report/words.h"

namespace culprit::report {
namespace {

// "gpu 20.3 ms, host-launch 8.1 ms": the critical path by what bounds it, without what is nothing.
std::string path_text(const Page& page, const evidence::Retimed& retimed) {
  std::string out;
  for (std::size_t i = 0; i < evidence::kBounds; ++i) {
    if (retimed.path[i] <= 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                       evidence::bound_name(static_cast<evidence::Bound>(i)),
                       page.duration(retimed.path[i]));
  }
  return out;
}

}  // namespace

std::string render_what_if(const Answer& answer, const TextOptions& options) {
  if (!answer.usable() || answer.what_if == nullptr) return {};
  const verdict::WhatIfAnswer& what_if = *answer.what_if;
  const evidence::Retimer& retimer = *answer.evidence->retimer;
  Page page(options);
  page.title("what if");
  for (const std::string& change : what_if.changes) page.paragraph(change, 2, 4);
  page.blank();
  page.labelled("gain", gain_text(page, what_if.gain));
  page.labelled("now", "critical path: " + path_text(page, what_if.now));
  page.labelled("then", "critical path: " + path_text(page, what_if.after));
  page.labelled("check", fmt::format("without a change the {} retimed steps come out {} off",
                                     retimer.steps(), text::percent(retimer.error())));
  return page.take();
}

}  // namespace culprit::report
