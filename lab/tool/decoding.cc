#include "lab/tool/decoding.h"

#include <algorithm>

#include "lab/tool/recording.h"

namespace culprit::lab {
namespace {

EngineOptions engine_options(const Options& options, Ranks* ranks, const Workload& workload) {
  const Arrivals& arrivals = options.arrivals;
  const std::int64_t own = workload.context + 1 + workload.steps;
  EngineOptions out;
  out.longest = std::max(own, arrivals.prompt + arrivals.context + arrivals.answer);
  const std::int64_t pages = (out.longest + options.page - 1) / options.page;
  out.threads = options.threads;
  out.isa = options.isa.value_or(best_isa());
  out.reading = workload.reading;
  out.pool_format = options.kv_format;
  out.batch = workload.batch + (arrivals.every > 0 ? 1 : 0);
  out.page = options.page;
  out.pool_tokens = options.pool_tokens > 0 ? options.pool_tokens : out.batch * pages * out.page;
  out.launch = launch_mode(options);
  out.faults = options.faults;
  out.ranks = ranks;
  out.chunk = std::max<std::int64_t>(1, arrivals.prompt);
  return out;
}

}  // namespace

Result<std::unique_ptr<Decoding>> Decoding::make(const Options& options, const Weights& weights,
                                                 Ranks* ranks, const Workload& workload) {
  auto decoding = std::unique_ptr<Decoding>(new Decoding(options.arrivals, options.seed));
  TRY(decoding->engine_, Engine::make(weights, engine_options(options, ranks, workload)));
  decoding->sampling_ = options.sampling;
  for (std::int64_t i = 0; i < workload.batch; ++i) {
    TRY([[maybe_unused]] const Ok own, decoding->submit(1, workload.context, workload.steps));
  }
  return decoding;
}

Status Decoding::submit(std::int64_t prompt, std::int64_t context, std::int64_t answer) {
  Request request;
  const auto place = static_cast<std::uint64_t>(submitted_++);
  for (std::int64_t i = 0; i < prompt; ++i)
    request.prompt.push_back(
        static_cast<std::int32_t>(uniform(seed_, (place << 20) + static_cast<std::uint64_t>(i)) *
                                  static_cast<double>(engine_->vocab())));
  request.new_tokens = answer;
  request.context = context;
  request.sampling = sampling_;
  request.sampling.seed = seed_ + place;
  TRY([[maybe_unused]] const std::size_t number, engine_->submit(std::move(request)));
  return Ok{};
}

TimedStep Decoding::step() {
  // What was accepted once is accepted again.
  if (arrivals_.every > 0 && ++steps_ % arrivals_.every == 0)
    static_cast<void>(submit(arrivals_.prompt, arrivals_.context, arrivals_.answer));
  const Nanos start = Launcher::now();
  const StepReport report = engine_->step();
  return {Launcher::now() - start, report.requests, report.prefilled > 0};
}

}  // namespace culprit::lab
