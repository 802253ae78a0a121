// The whole way from bytes to a JSON answer, with blocks so small that every join is exercised. The first byte chooses the
// block size and the number of threads. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "ingest/ingest.h"
#include "report/report.h"

using namespace culprit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  static const int file = memfd_create("fuzz", 0);
  if (ftruncate(file, 0) != 0 ||
      pwrite(file, data + 1, size - 1, 0) != static_cast<ssize_t>(size - 1))
    return 0;
  ingest::Options options;
  options.block_size = std::size_t{64} << (data[0] & 7U);
  options.threads = 1 + (data[0] >> 3 & 1U);
  const auto trace = ingest::load("/proc/self/fd/" + std::to_string(file), options);
  if (!trace.ok()) {
    if (trace.error().what.empty()) std::abort();
    return 0;
  }
  const auto run = run::build(**trace, {});
  if (!run.ok()) return 0;
  evidence::Evidence evidence = evidence::measure(*run, {});
  Nanos sum = 0;
  for (const evidence::BudgetRow& row : evidence.budget) sum += row.ns_per_step;
  if (sum != evidence.steps.mean) std::abort();
  const verdict::Verdict verdict = verdict::judge(evidence);
  report::Answer answer;
  answer.info = &(*trace)->info;
  answer.run = &*run;
  answer.evidence = &evidence;
  answer.verdict = &verdict;
  if (report::render_json(answer).empty() || report::render_text(answer, {}).empty()) std::abort();
  return 0;
}
