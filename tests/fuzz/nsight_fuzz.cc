// From the bytes of a database to a JSON answer. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds
// the seeds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ingest/nsight.h"
#include "report/report.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto database = ingest::Database::from_memory({reinterpret_cast<const char*>(data), size});
  if (!database.ok()) return 0;
  store::Trace trace;
  trace.info.path = "memory";
  trace.info.file_bytes = static_cast<std::int64_t>(size);
  const Status read = ingest::read_nsight(*database, {}, trace);
  if (!read.ok()) {
    if (read.error().what.empty()) std::abort();
    return 0;
  }
  const auto run = run::build(trace, {});
  if (!run.ok()) return 0;
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
  if (report::render_json(answer).empty() || report::render_text(answer, {}).empty()) std::abort();
  return 0;
}
