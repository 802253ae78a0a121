// `culprit lab run`: prompts in, tokens out, and how fast.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/engine/engine.h"
#include "lab/tool/commands.h"
#include "lab/tool/model.h"
#include "lab/tool/ranks.h"
#include "lab/tool/recording.h"
#include "lab/tool/times.h"

namespace culprit::lab {
namespace {

struct Timing {
  Times decode;  // steps without prompt tokens
  Nanos prefill = 0;
  std::int64_t prefilled = 0, decoded = 0, evicted = 0;  // decoded: in those steps
};

// The prompt of each request: the given one, or random tokens of its own.
std::vector<std::int32_t> prompt_of(const Options& options, std::int64_t vocab,
                                    std::uint64_t request) {
  if (!options.tokens.empty()) return options.tokens;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < options.prompt_length; ++i) {
    const auto place = (request << 32) + static_cast<std::uint64_t>(i);
    tokens.push_back(
        static_cast<std::int32_t>(uniform(options.seed, place) * static_cast<double>(vocab)));
  }
  return tokens;
}

EngineOptions engine_options(const Options& options, Ranks* ranks) {
  const auto prompt = options.prompt_length + static_cast<std::int64_t>(options.tokens.size());
  const std::int64_t longest = prompt + options.new_tokens;
  const std::int64_t pages = (longest + options.page - 1) / options.page;
  EngineOptions out;
  out.threads = options.threads;
  out.isa = options.isa.value_or(best_isa());
  out.reading = options.readings.front();
  out.pool_format = options.kv_format;
  out.batch = options.batch.front();
  out.page = options.page;
  out.pool_tokens = options.pool_tokens > 0 ? options.pool_tokens : out.batch * pages * out.page;
  out.longest = longest;
  out.chunk = options.chunk;
  out.launch = launch_mode(options);
  out.faults = options.faults;
  out.ranks = ranks;
  return out;
}

Timing run_all(Engine& engine, Screen& screen) {
  Timing timing;
  while (!engine.idle()) {
    const Nanos start = Launcher::now();
    const StepReport step = engine.step();
    const Nanos time = Launcher::now() - start;
    timing.evicted += step.evicted;
    if (step.prefilled > 0) {
      timing.prefill += time;
      timing.prefilled += step.prefilled;
    } else {
      timing.decode.add(time);
      timing.decoded += step.decoded;
    }
    screen.progress(
        fmt::format("{} prompt tokens, {} decode steps", timing.prefilled, timing.decode.size()));
  }
  return timing;
}

double per_second(std::int64_t count, Nanos time) {
  return time > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(time) : 0;
}

std::string text_of(const LoadedModel& model, const Ranks* ranks, const Engine& engine,
                    std::size_t requests, const Timing& timing, const std::string& recorded) {
  std::string out;
  for (std::size_t i = 0; i < requests; ++i)
    out += fmt::format("{}\n", fmt::join(engine.generated(i), " "));
  out += fmt::format("\nmodel    {}: {}, {}{}\n", model.name, layers_of(model.weights->config),
                     text::bytes(model.bytes), ranks == nullptr ? "" : " on rank 0");
  out += fmt::format("prompt   {} tokens in {}, {} tokens/s\n", text::count(timing.prefilled),
                     text::duration(timing.prefill, false),
                     text::number(per_second(timing.prefilled, timing.prefill)));
  if (!timing.decode.empty())
    out += fmt::format("decode   {} tokens/s; TPOT {} median, {} p99 of {} steps\n",
                       text::number(per_second(timing.decoded, timing.decode.sum())),
                       text::duration(timing.decode.median(), false),
                       text::duration(timing.decode.p99(), false), timing.decode.size());
  if (timing.evicted > 0)
    out += fmt::format("pool     full: {} times a request was evicted and computed again\n",
                       timing.evicted);
  if (!recorded.empty()) out += "\n" + recorded;
  return out;
}

std::string json_of(const LoadedModel& model, const Options& options, const Engine& engine,
                    std::size_t requests, const Timing& timing) {
  nlohmann::ordered_json out;
  out["kind"] = "lab-run";
  out["model"] = {
      {"name", model.name}, {"layers", model.weights->config.layers}, {"bytes", model.bytes}};
  out["ranks"] = {{"tp", options.ranks}, {"ep", options.shard.expert_groups}};
  for (std::size_t i = 0; i < requests; ++i) {
    const auto tokens = engine.generated(i);
    out["requests"].push_back(
        {{"tokens", std::vector<std::int32_t>(tokens.begin(), tokens.end())}});
  }
  out["prefill"] = {{"tokens", timing.prefilled}, {"ns", timing.prefill}};
  out["decode"] = {{"steps", timing.decode.size()},
                   {"tokens", timing.decoded},
                   {"tokens_per_s", per_second(timing.decoded, timing.decode.sum())},
                   {"tpot_median_ns", timing.decode.median()},
                   {"tpot_p99_ns", timing.decode.p99()}};
  out["evicted"] = timing.evicted;
  return out.dump(1) + "\n";
}

// Everything before the first step.
Status prepare(const Options& options, Ranks* ranks, Screen& screen, LoadedModel& model,
               std::optional<Recording>& recording, std::unique_ptr<Engine>& engine) {
  TRY([[maybe_unused]] const Ok loaded, load_model(options, model, ranks));
  TRY(recording, Recording::begin(options, ranks, screen));
  TRY(engine, Engine::make(*model.weights, engine_options(options, ranks)));
  for (std::int64_t i = 0; i < options.batch.front(); ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    Request request;
    request.prompt = prompt_of(options, engine->vocab(), number);
    request.new_tokens = options.new_tokens;
    request.sampling = options.sampling;
    request.sampling.seed = options.seed + number;
    request.stops_at_eos = true;
    TRY([[maybe_unused]] const std::size_t queued, engine->submit(std::move(request)));
  }
  return Ok{};
}

}  // namespace

Status run(const Options& options, Ranks* ranks, Screen& screen) {
  screen.progress("loading the model");
  LoadedModel model;
  std::optional<Recording> recording;
  std::unique_ptr<Engine> engine;
  TRY([[maybe_unused]] const Ok ready,
      agreed(ranks, prepare(options, ranks, screen, model, recording, engine)));
  const auto requests = static_cast<std::size_t>(options.batch.front());
  const Timing timing = run_all(*engine, screen);
  std::string recorded;
  if (recording) {
    TRY(recorded, recording->end());
  }
  return screen.answer(text_of(model, ranks, *engine, requests, timing, recorded),
                       json_of(model, options, *engine, requests, timing));
}

}  // namespace culprit::lab
