// Each stage of the pipeline alone, over one forged trace that stays in memory: ns per event and bytes per second. The answer
// is checked before anything is timed. Usage: stages TRACE [google-benchmark flags]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>

#include "ingest/ingest.h"
#include "verdict/verdict.h"

namespace {

using namespace culprit;

std::string path;

std::unique_ptr<store::Trace> load(int threads) {
  ingest::Options options;
  options.threads = threads;
  auto trace = ingest::load(path, options);
  return trace.ok() ? std::move(*trace) : nullptr;
}

void count(benchmark::State& state, const store::Trace& trace) {
  state.SetBytesProcessed(state.iterations() * trace.info.text_bytes);
  state.counters["events/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * trace.info.events), benchmark::Counter::kIsRate);
}

void ingest_stage(benchmark::State& state) {
  std::unique_ptr<store::Trace> trace;
  for (auto _ : state) trace = load(static_cast<int>(state.range(0)));
  count(state, *trace);
}

void run_stage(benchmark::State& state) {
  const auto trace = load(0);
  run::Options options;
  options.threads = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(run::build(*trace, options));
  count(state, *trace);
}

void evidence_stage(benchmark::State& state) {
  const auto trace = load(0);
  const auto run = run::build(*trace, {});
  for (auto _ : state) {
    evidence::Evidence evidence = evidence::measure(*run, {});
    benchmark::DoNotOptimize(verdict::judge(evidence));
  }
  count(state, *trace);
}

// The stages must do their work on this file, else their times mean nothing.
bool answers() {
  const auto trace = load(0);
  if (!trace) return false;
  const auto run = run::build(*trace, {});
  if (!run.ok()) return false;
  evidence::Evidence evidence = evidence::measure(*run, {});
  Nanos sum = 0;
  for (const auto& row : evidence.budget) sum += row.ns_per_step;
  return evidence.steps.used > 0 && sum == evidence.steps.mean &&
         !verdict::judge(evidence).headline.empty();
}

}  // namespace

BENCHMARK(ingest_stage)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(run_stage)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(evidence_stage)->Unit(benchmark::kMillisecond)->UseRealTime();

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: stages TRACE [google-benchmark flags]\n");
    return 2;
  }
  path = argv[1];
  if (!answers()) {
    std::fprintf(stderr, "stages: %s does not give an answer\n", argv[1]);
    return 2;
  }
  --argc;
  ++argv;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
