// answer(): everything that becomes of a trace once it is read; aborts where an invariant does not hold.
#pragma once

#include <cstdlib>

#include "report/report.h"

namespace culprit::fuzz {

inline void answer(const store::Trace& trace) {
  const auto run = run::build(trace, {});
  if (!run.ok()) return;
  evidence::Evidence evidence = evidence::measure(*run, {});
  Nanos sum = 0;
  for (const evidence::BudgetRow& row : evidence.budget) sum += row.ns_per_step;
  if (sum != evidence.steps.mean) std::abort();
  const verdict::Verdict verdict = verdict::judge(evidence);
  report::Answer answer;
  answer.info = &trace.info;
  answer.run = &*run;
  answer.evidence = &evidence;
  answer.verdict = &verdict;
  if (report::render_json(answer).empty() || report::render_text(answer, {}).empty() ||
      report::render_markdown(answer, {}, {}).empty())
    std::abort();
}

}  // namespace culprit::fuzz
