// `culprit lab bench`: what a decode step costs, by reading strategy, batch and context, kernel by
// kernel, held against the bandwidth measured between the runs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "lab/engine/cores.h"
#include "lab/engine/engine.h"
#include "lab/engine/ledger.h"
#include "lab/kernels/roof.h"
#include "lab/tool/bench_report.h"
#include "lab/tool/commands.h"
#include "lab/tool/decoding.h"
#include "lab/tool/model.h"
#include "lab/tool/ranks.h"
#include "lab/tool/recording.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kWarmUp = 2;  // steps: caches, pages and cores wake up
constexpr int kPassesBetween = 3;    // of the roof, before each run and after the last

// A recording's window lies within the steps.
std::int64_t steps_of(const Options& options) {
  if (!wants_recording(options)) return options.steps;
  return std::max(options.steps, options.profile_warmup + options.profile_steps - kWarmUp);
}

Status measure(const Options& options, const Weights& weights, Ranks* ranks, Screen& screen,
               BenchRun& run) {
  const std::int64_t steps = steps_of(options);
  Result<std::unique_ptr<Decoding>> decoding = Decoding::make(options, weights, ranks,
                                                              {.reading = run.reading,
                                                               .batch = run.batch,
                                                               .context = run.context,
                                                               .steps = kWarmUp + steps});
  TRY([[maybe_unused]] const Ok ready,
      agreed(ranks, decoding.ok() ? Status(Ok{}) : Status(decoding.error())));
  Engine& engine = (*decoding)->engine();
  run.pool_tokens = engine.pool().shape().tokens;
  run.pool_bytes = engine.pool().shape().bytes();
  run.threads = engine.threads();
  for (std::int64_t step = 0; step < kWarmUp + steps; ++step) {
    if (step == kWarmUp) engine.set_recorder(&run.ledger);
    const TimedStep timed = (*decoding)->step();
    if (step >= kWarmUp && !timed.prefills) run.steps.add(timed.time);
    screen.progress(fmt::format("{}, batch {}, context {}: step {} of {}",
                                reading_name(run.reading), run.batch, run.context, step + 1,
                                kWarmUp + steps));
  }
  return Ok{};
}

// Ranks of one machine read at the same time: what none of its caches holds is their buffers together.
Result<Roof> prepare_roof(Team& team, Isa isa, const Ranks* ranks) {
  if (ranks == nullptr) return Roof::prepare(team, isa);
  TRY(const std::int64_t cache, last_level_cache());
  return Roof::prepare(team, isa, Roof::kCaches * cache / ranks->local().size);
}

// Strategies differ in nothing on a pool that needs no cast.
std::vector<Reading> readings_of(const Options& options) {
  if (options.kv_format == KvFormat::kBf16) return {Reading::kFused};
  return options.readings;
}

Status check_recording(const Options& options) {
  const bool one = readings_of(options).size() * options.batch.size() * options.context.size() == 1;
  if (!wants_recording(options) || one) return Ok{};
  return Error{.code = Error::Code::kUsage,
               .what = "a recording is of one run",
               .where = {},
               .hint = "one --strategy, one --batch and one --context with --profile",
               .note_code = {}};
}

Status begin_recording(const Options& options, const Ranks* ranks, Screen& screen,
                       std::optional<Recording>& recording) {
  TRY(recording, Recording::begin(options, ranks, screen));
  return Ok{};
}

}  // namespace

Status bench(const Options& options, Ranks* ranks, Screen& screen) {
  TRY([[maybe_unused]] const Ok checked, check_recording(options));
  screen.progress("making the model");
  LoadedModel model;
  TRY([[maybe_unused]] const Ok loaded, agreed(ranks, load_model(options, model, ranks)));
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(usable_cores().size());
  std::optional<Recording> recording;
  TRY([[maybe_unused]] const Ok records,
      agreed(ranks, begin_recording(options, ranks, screen, recording)));
  Team team(threads);
  Result<Roof> roof = prepare_roof(team, options.isa.value_or(best_isa()), ranks);
  TRY([[maybe_unused]] const Ok ready,
      agreed(ranks, roof.ok() ? Status(Ok{}) : Status(roof.error())));
  BenchReport report{.model = model.name,
                     .layers = layers_of(model.weights->config),
                     .ranks = options.ranks,
                     .expert_groups = options.shard.expert_groups,
                     .model_bytes = model.bytes,
                     .isa = options.isa.value_or(best_isa()),
                     .kv_format = options.kv_format,
                     .runs = {}};
  const auto pass_roof = [&] {
    screen.progress("measuring the memory's bandwidth");
    if (ranks != nullptr) ranks->barrier();  // what a rank gets while all of them read
    for (int pass = 0; pass < kPassesBetween; ++pass) roof->pass();
  };
  for (const Reading reading : readings_of(options))
    for (const std::int64_t batch : options.batch)
      for (const std::int64_t context : options.context) {
        pass_roof();
        BenchRun& run = report.runs.emplace_back();
        run.reading = reading;
        run.batch = batch;
        run.context = context;
        TRY([[maybe_unused]] const Ok measured,
            measure(options, *model.weights, ranks, screen, run));
      }
  pass_roof();
  report.read_rate = roof->best(Move::kRead);
  report.copy_rate = roof->best(Move::kCopy);
  std::string recorded;
  if (recording) {
    TRY(const std::string table, recording->end());
    recorded = fmt::format("\n{}", table);
  }
  return screen.answer(bench_text(report) + recorded, bench_json(report));
}

}  // namespace culprit::lab
