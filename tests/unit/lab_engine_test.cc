// The engine against the oracle, and against itself under every change that must not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/engine/engine.h"
#include "lab/oracle/oracle.h"
#include "unit/lab_tiny_weights.h"

namespace culprit::lab {
namespace {

using Tokens = std::vector<std::int32_t>;

ModelConfig with_indexer(ModelConfig config, std::int64_t top_k) {
  config.indexer = {.heads = 2, .head_dim = 16, .top_k = top_k, .rope = RopeStyle::kHalfSplit};
  return config;
}

Tokens prompt(std::int64_t length, std::int64_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(vocab) - 1);
  Tokens tokens;
  for (std::int64_t i = 0; i < length; ++i) tokens.push_back(any(random));
  return tokens;
}

EngineOptions small() {
  EngineOptions options;
  options.threads = 2;
  options.isa = best_isa();
  options.pool_tokens = 256;
  options.longest = 128;
  options.chunk = 16;
  return options;
}

struct Answer {
  Tokens tokens;
  std::vector<std::vector<float>> logits;
  friend bool operator==(const Answer&, const Answer&) = default;
};

// Every request's tokens and the logits that they were drawn from, bit for bit.
std::vector<Answer> run(const Weights& weights, const EngineOptions& options,
                        const std::vector<Request>& requests, StepReport* sums = nullptr) {
  auto engine = Engine::make(weights, options);
  EXPECT_TRUE(engine.ok());
  for (const Request& request : requests) EXPECT_TRUE((*engine)->submit(request).ok());
  std::vector<Answer> answers(requests.size());
  while (!(*engine)->idle()) {
    const StepReport report = (*engine)->step();
    if (sums != nullptr) {
      sums->evicted += report.evicted;
      sums->decoded += report.decoded;
      sums->prefilled += report.prefilled;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto logits = (*engine)->last_logits(i);
      if (!logits.empty()) answers[i].logits.emplace_back(logits.begin(), logits.end());
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE((*engine)->finished(i));
    const auto generated = (*engine)->generated(i);
    answers[i].tokens.assign(generated.begin(), generated.end());
  }
  return answers;
}

std::vector<ModelConfig> families() {
  return {tiny_mla(), with_indexer(tiny_mla(), 12), tiny_gqa()};
}

std::vector<Request> requests(std::int64_t vocab, std::size_t count) {
  std::vector<Request> out;
  for (std::size_t i = 0; i < count; ++i) {
    Request request;
    request.prompt = prompt(static_cast<std::int64_t>(5 + 9 * i), vocab, static_cast<unsigned>(i));
    request.new_tokens = 12;
    if (i % 2 == 1) request.sampling = {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = i};
    out.push_back(request);
  }
  return out;
}

// Teacher-forced: at each position the largest difference of any logit, in units of their spread.
double worst_error(const Weights& weights, const EngineOptions& options, Oracle::Pool pool) {
  const Tokens tokens = prompt(40, weights.config.vocab, 5);
  Oracle oracle(weights, pool);
  auto sequence = oracle.begin();
  double worst = 0;
  for (std::size_t length = 1; length <= tokens.size(); ++length) {
    const auto exact = oracle.next(sequence, tokens[length - 1]);
    if (length % 6 != 0) continue;
    Request request;
    request.prompt.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
    request.new_tokens = 1;
    const auto logits = run(weights, options, {request})[0].logits.at(0);
    double squares = 0;
    for (const double value : exact) squares += value * value / static_cast<double>(exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i)
      worst =
          std::max(worst, std::abs(static_cast<double>(logits[i]) - exact[i]) / std::sqrt(squares));
  }
  return worst;
}

// F32 weights leave nothing to round but the pool's rows: what remains are sums in float (1e-6), and
// numbers of a row that they bring to the other side of a rounding border (some 1e-5 each). This also shows that absorbed MLA is the unabsorbed form, and that the indexer picks the same rows.
TEST(Engine, AgreesWithTheOracleInF32) {
  for (const ModelConfig& config : families()) {
    TinyWeights tiny(config);
    for (const Isa isa : available_isas()) {
      EngineOptions options = small();
      options.isa = isa;
      EXPECT_LT(worst_error(*tiny, options, Oracle::Pool::kBf16), 1e-4) << isa_name(isa);
      EXPECT_LT(worst_error(*tiny, options, Oracle::Pool::kExact), 2e-2) << isa_name(isa);
      options.pool_format = KvFormat::kE4m3;
      EXPECT_LT(worst_error(*tiny, options, Oracle::Pool::kE4m3), 1e-4) << isa_name(isa);
    }
  }
}

TEST(Engine, ReadsThePoolInThreeWaysWithOneResult) {
  for (const ModelConfig& config : families()) {
    TinyWeights tiny(config);
    EngineOptions options = small();
    options.pool_format = KvFormat::kE4m3;
    options.batch = 3;
    const auto wanted = run(*tiny, options, requests(config.vocab, 5));
    for (const Reading reading : {Reading::kPoolCast, Reading::kGatherCast}) {
      options.reading = reading;
      EXPECT_EQ(run(*tiny, options, requests(config.vocab, 5)), wanted) << reading_name(reading);
    }
  }
}

TEST(Engine, AnswersDoNotDependOnCompany) {
  for (const ModelConfig& config : families()) {
    TinyWeights tiny(config);
    const auto wanted_of = requests(config.vocab, 6);
    std::vector<Answer> alone;
    for (const Request& request : wanted_of)
      alone.push_back(run(*tiny, small(), {request}).front());
    struct Change {
      int threads;
      std::int64_t batch, chunk, page;
    };
    for (const Change change : {Change{1, 6, 16, 1}, Change{3, 6, 100, 1}, Change{2, 2, 3, 1},
                                Change{2, 4, 16, 64}, Change{1, 1, 1, 64}}) {
      EngineOptions options = small();
      options.threads = change.threads;
      options.batch = change.batch;
      options.chunk = change.chunk;
      options.page = change.page;
      options.pool_tokens = 1024;
      EXPECT_EQ(run(*tiny, options, wanted_of), alone)
          << change.threads << " " << change.batch << " " << change.chunk << " " << change.page;
    }
  }
}

// Nor on who launches, nor on what delays the launches.
TEST(Engine, AnswersDoNotDependOnTheLaunches) {
  for (const ModelConfig& config : families()) {
    TinyWeights tiny(config);
    const auto asked = requests(tiny->lm_head.rows, 3);
    EngineOptions options = small();
    options.pool_format = KvFormat::kE4m3;
    options.batch = 2;
    for (const Reading reading : {Reading::kPoolCast, Reading::kGatherCast, Reading::kFused}) {
      options.reading = reading;
      options.faults = {};
      options.launch = LaunchMode::kGraph;
      const auto expected = run(*tiny, options, asked);
      options.launch = LaunchMode::kEager;
      EXPECT_EQ(run(*tiny, options, asked), expected);
      options.faults = {.host_delay = 2000, .sync_per_layer = true};
      EXPECT_EQ(run(*tiny, options, asked), expected);
    }
  }
}

TEST(Engine, EvictedRequestsGiveTheSameTokens) {
  for (const ModelConfig& config : families()) {
    TinyWeights tiny(config);
    EngineOptions options = small();
    options.batch = 6;
    options.pool_tokens = 512;
    const auto wanted = run(*tiny, options, requests(config.vocab, 6));
    options.pool_tokens = 120;
    options.page = 4;
    StepReport sums;
    const auto tight = run(*tiny, options, requests(config.vocab, 6), &sums);
    EXPECT_GT(sums.evicted, 0);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(tight[i].tokens, wanted[i].tokens);
  }
}

TEST(Engine, RefusesWhatCannotRun) {
  TinyWeights tiny(tiny_gqa());
  auto engine = Engine::make(*tiny, small());
  ASSERT_TRUE(engine.ok());
  const auto fault = [&](Request request) {
    const auto answer = (*engine)->submit(std::move(request));
    return answer.ok() ? std::string() : answer.error().what;
  };
  EXPECT_NE(fault({.prompt = {}}).find("nothing to do"), std::string::npos);
  EXPECT_NE(fault({.prompt = {1, 48}}).find("token 48"), std::string::npos);
  EXPECT_NE(fault({.prompt = {-1}}).find("token -1"), std::string::npos);
  EXPECT_NE(fault({.prompt = {1}, .new_tokens = 128}).find("do not fit"), std::string::npos);
  EXPECT_EQ(fault({.prompt = {1}, .new_tokens = 127}), "");
  EngineOptions options = small();
  options.pool_tokens = std::int64_t{1} << 24;
  options.page = 3;
  const auto odd = Engine::make(*tiny, options);
  ASSERT_FALSE(odd.ok());
  EXPECT_NE(odd.error().what.find("pages of 3"), std::string::npos);
}

TEST(Engine, StopsAtTheEndToken) {
  TinyWeights tiny(tiny_gqa());
  Request request{.prompt = {1, 2, 3}, .new_tokens = 20};
  const Tokens all = run(*tiny, small(), {request})[0].tokens;
  ASSERT_EQ(all.size(), 20U);
  tiny->config.eos = {all[4]};
  request.stops_at_eos = true;
  const auto first = std::find(all.begin(), all.end(), all[4]) - all.begin();
  EXPECT_EQ(run(*tiny, small(), {request})[0].tokens.size(), static_cast<std::size_t>(first + 1));
}

}  // namespace
}  // namespace culprit::lab
