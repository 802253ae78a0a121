#include "lab/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/engine/cores.h"

namespace culprit::lab {
namespace {

Error refused(std::string what, std::string where, std::string hint) {
  return {.code = Error::Code::kUsage,
          .what = std::move(what),
          .where = std::move(where),
          .hint = std::move(hint),
          .note_code = {}};
}

Status check(const EngineOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"page", options.page},
                                                             {"batch", options.batch},
                                                             {"longest request", options.longest},
                                                             {"chunk", options.chunk},
                                                             {"pool", options.pool_tokens}};
  for (const auto& [name, size] : sizes)
    if (size < 1 || size > kMost)
      return refused(fmt::format("{} of {}", name, size), "the engine's options",
                     fmt::format("between 1 and {}", kMost));
  if (options.launch == LaunchMode::kGraph && options.faults.sync_per_layer)
    return refused("a wait behind each layer of a graph", "the engine's options",
                   "the host is not there while a graph runs: launch eagerly");
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::make(const Weights& weights, const EngineOptions& options) {
  TRY([[maybe_unused]] const Ok checked, check(options));
  PoolShape shape = pool_shape(weights);
  shape.tokens = options.pool_tokens;
  shape.page = options.page;
  shape.format = options.pool_format;
  TRY(Pool pool, Pool::make(shape, options.batch, options.longest));
  auto engine = std::unique_ptr<Engine>(new Engine(weights, options, std::move(pool)));
  const StepLimits limits{.rows = options.batch + options.chunk,
                          .logits = options.batch,
                          .requests = options.batch,
                          .longest = options.longest};
  TRY(engine->forward_,
      Forward::make(weights, engine->pool_, kernels(options.isa), engine->forward_launch_,
                    options.reading, limits, options.ranks));
  return engine;
}

Engine::Engine(const Weights& weights, const EngineOptions& options, Pool pool)
    : weights_(weights),
      options_(options),
      vocab_(weights.lm_head.rows * (options.ranks != nullptr ? options.ranks->size() : 1)),
      stream_(options.threads > 0 ? options.threads : static_cast<int>(usable_cores().size()),
              options.launch == LaunchMode::kEager ? Stream::Host::kBesideLeader
                                                   : Stream::Host::kAnywhere),
      launch_(stream_, options.faults),
      forward_launch_(stream_, options.faults),
      pool_(std::move(pool)) {
  for (int thread = 0; thread < stream_.threads(); ++thread) samplers_.emplace_back(vocab_);
  if (options.faults.blocking_copy)
    logits_copy_.resize(static_cast<std::size_t>(options.batch * vocab_));
  rows_.reserve(static_cast<std::size_t>(options.batch + options.chunk));
  planned_.reserve(static_cast<std::size_t>(options.batch));
  running_.reserve(static_cast<std::size_t>(options.batch));
  drawn_.resize(static_cast<std::size_t>(options.batch));
  next_.resize(static_cast<std::size_t>(options.batch));
}

Result<std::size_t> Engine::submit(Request request) {
  const std::string where = fmt::format("request {}", states_.size());
  const auto prompt = static_cast<std::int64_t>(request.prompt.size()) + request.context;
  if (request.prompt.empty() || request.new_tokens < 1 || request.context < 0)
    return refused("nothing to do", where, "a prompt of one token at least, and one new token");
  for (const std::int32_t token : request.prompt)
    if (token < 0 || token >= vocab_)
      return refused(fmt::format("token {} is not in the vocabulary", token), where,
                     fmt::format("tokens are 0 to {}", vocab_ - 1));
  const std::int64_t most = std::min(options_.longest, options_.pool_tokens);
  if (request.new_tokens > most || prompt > most - request.new_tokens)
    return refused(fmt::format("{} tokens and {} new ones do not fit", prompt, request.new_tokens),
                   where,
                   fmt::format("a request has {} tokens at most, the pool {}", options_.longest,
                               options_.pool_tokens));
  State state;
  state.tokens.reserve(static_cast<std::size_t>(prompt + request.new_tokens));
  state.tokens.assign(static_cast<std::size_t>(request.context), 0);
  state.tokens.insert(state.tokens.end(), request.prompt.begin(), request.prompt.end());
  state.prompt = prompt;
  state.wanted = request.new_tokens;
  state.context = request.context;
  state.sampling = request.sampling;
  state.stops_at_eos = request.stops_at_eos;
  states_.push_back(std::move(state));
  waiting_.insert(waiting_.begin(), states_.size() - 1);
  waiting_.reserve(states_.size());
  return states_.size() - 1;
}

StepReport Engine::step() {
  StepReport report;
  for (State& state : states_) state.logits = -1;
  admit();
  plan(report);
  if (rows_.empty()) return report;
  report.requests = static_cast<std::int64_t>(planned_.size());
  const profile::Step span({.batch = static_cast<std::int64_t>(planned_.size()),
                            .tokens = static_cast<std::int64_t>(rows_.size()),
                            .kind = report.prefilled == 0 ? profile::Name("DECODE")
                                    : report.decoded == 0 ? profile::Name("EXTEND")
                                                          : profile::Name("MIXED")});
  waste_time();
  launch_forward();
  launch_draws();
  launch_.synchronize();
  take_draws();
  return report;
}

// What a host does between two steps that has nothing to do with launching.
void Engine::waste_time() {
  const Faults& faults = options_.faults;
  const bool stalls = faults.stall > 0 && steps_++ % kStallEvery == kStallEvery - 1;
  if (faults.host_work == 0 && !stalls) return;
  const Op op(launch_, stalls ? profile::Name("collect_garbage") : profile::Name("prepare_batch"));
  Launcher::busy(faults.host_work + (stalls ? faults.stall : 0));
}

void Engine::launch_forward() {
  const StepRows rows = forward_->bring_in(launch_, rows_);
  const std::int64_t limit = options_.faults.graph_limit;
  const bool beyond = limit > 0 && static_cast<std::int64_t>(planned_.size()) > limit;
  if (options_.launch == LaunchMode::kEager || beyond) return (*forward_)(rows);
  launch_.graph(forward_launch_, [forward = forward_.get(), rows] { (*forward)(rows); });
}

// Requests come in while there is room for all that they have, and a page more for each that runs.
void Engine::admit() {
  while (!waiting_.empty() && static_cast<std::int64_t>(running_.size()) < options_.batch) {
    State& state = states_[waiting_.back()];
    const std::int64_t growth = static_cast<std::int64_t>(running_.size()) * options_.page;
    if (pool_.free_tokens() < state.length() + growth) return;
    running_.push_back(waiting_.back());
    waiting_.pop_back();
    state.lease = pool_.lease();
    if (state.context > 0) make_up_context(state);
  }
}

void Engine::make_up_context(State& state) {
  pool_.reserve(state.lease, state.context);
  pool_.draw(kernels(options_.isa), {state.lease.slots, static_cast<std::size_t>(state.context)},
             state.sampling.seed);
  state.cached = state.context;
}

// The rows of this step: what each running request lacks, prompts no faster than the chunk allows.
void Engine::plan(StepReport& report) {
  rows_.clear();
  planned_.clear();
  std::int64_t budget = options_.chunk, logits = 0;
  for (std::size_t place = 0; place < running_.size(); ++place) {
    State& state = states_[running_[place]];
    const std::int64_t lacks = state.length() - state.cached;
    const std::int64_t count = lacks == 1 ? 1 : std::min(lacks, budget);
    if (count == 0) continue;
    if (!make_room(place, state.cached + count, report)) return;
    if (lacks > 1) budget -= count;
    const bool complete = count == lacks;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = state.cached + i;
      rows_.push_back({.token = state.tokens[static_cast<std::size_t>(position)],
                       .position = position,
                       .slots = state.lease.slots,
                       .logits = complete && i + 1 == count});
    }
    if (complete) state.logits = logits++;
    planned_.push_back({running_[place], count});
    // The one token behind a context that nobody computed is a decode step's.
    const bool first = state.length() == state.prompt && state.context == 0;
    (first || count > 1 ? report.prefilled : report.decoded) += count;
  }
}

// Slots for `tokens` of the request at `place`; false: it was the youngest, and is evicted itself.
bool Engine::make_room(std::size_t place, std::int64_t tokens, StepReport& report) {
  State& state = states_[running_[place]];
  while (!pool_.reserve(state.lease, tokens)) {
    const std::size_t youngest = running_.back();
    State& evicted = states_[youngest];
    pool_.end(evicted.lease);
    evicted.cached = 0;
    running_.pop_back();
    waiting_.push_back(youngest);
    ++report.evicted;
    if (running_.size() == place) return false;
  }
  return true;
}

// The next token of each request that has all its rows.
void Engine::launch_draws() {
  const auto requests = static_cast<std::int64_t>(planned_.size());
  Launch launch = row_launch("sampling", "sampling_kernel", -1, requests, vocab_);
  launch.written = requests * 4;
  if (options_.faults.blocking_copy) copy_logits();
  {
    const Op op(launch_, "sampling", profile::kFloat(requests, vocab_));
    const std::int64_t pieces = options_.faults.single_block ? 1 : requests;
    launch_(launch, pieces, [this, pieces, requests](std::int64_t piece, int thread) {
      for (std::int64_t i = piece; i < requests; i += pieces) draw(i, thread);
    });
  }
  const Op op(launch_, "aten::copy_", profile::kInt32(requests), profile::kInt32(requests));
  launch_.copy(profile::kCopyOut, next_.data(), drawn_.data(), requests * 4);
}

void Engine::draw(std::int64_t place, int thread) {
  const auto at = static_cast<std::size_t>(place);
  const State& state = states_[planned_[at].request];
  if (state.logits < 0) return;
  Sampler& sampler = samplers_[static_cast<std::size_t>(thread)];
  drawn_[at] =
      sampler(forward_->logits(state.logits), state.sampling, state.length() - state.prompt);
}

// As servers do that look at the scores themselves, for log probabilities or penalties.
void Engine::copy_logits() {
  std::int64_t rows = 0;
  for (const Planned& planned : planned_) rows += states_[planned.request].logits >= 0 ? 1 : 0;
  if (rows == 0) return;
  const std::int64_t vocab = weights_.lm_head.rows;
  const Op op(launch_, "aten::copy_", profile::kFloat(rows, vocab), profile::kFloat(rows, vocab));
  launch_.copy_to_pageable(logits_copy_.data(), forward_->logits(0).data(), rows * vocab * 4);
}

void Engine::take_draws() {
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    State& state = states_[planned_[i].request];
    state.cached += planned_[i].rows;
    if (state.logits < 0) continue;
    state.tokens.push_back(next_[i]);
    const auto& eos = weights_.config.eos;
    const bool stops =
        state.stops_at_eos && std::find(eos.begin(), eos.end(), state.tokens.back()) != eos.end();
    if (state.length() - state.prompt < state.wanted && !stops) continue;
    state.finished = true;
    pool_.end(state.lease);
    running_.erase(std::find(running_.begin(), running_.end(), planned_[i].request));
  }
}

std::span<const std::int32_t> Engine::generated(std::size_t request) const {
  const State& state = states_[request];
  return std::span(state.tokens).subspan(static_cast<std::size_t>(state.prompt));
}

std::span<const float> Engine::last_logits(std::size_t request) const {
  const std::int64_t row = states_[request].logits;
  return row < 0 ? std::span<const float>() : forward_->logits(row);
}

}  // namespace culprit::lab
