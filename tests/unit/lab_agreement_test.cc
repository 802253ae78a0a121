// The fast engine against the oracle on models of each family, in every format of weights and pool.
//
// What a choice among near equals does to a token (an expert, a position, a code of FP4 that falls the
// other way) is no error, and hides those that are. So choices are checked in F32, where both engines
// nearly always make the same ones, and roundings on the same models without choices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/engine/engine.h"
#include "lab/model/random_model.h"
#include "lab/oracle/oracle.h"
#include "unit/lab_forward.h"

namespace culprit::lab {
namespace {

ModelConfig small(const char* name) {
  auto config = preset(name);
  EXPECT_TRUE(config.ok());
  config->layers = 2;
  config->vocab = 256;
  return *config;
}

RandomWeights model(const ModelConfig& config, Scheme scheme, std::uint64_t seed = 1) {
  auto weights = random_weights({config, scheme, seed});
  EXPECT_TRUE(weights.ok());
  return std::move(*weights);
}

Oracle::Pool oracle_pool(KvFormat format) {
  return format == KvFormat::kBf16 ? Oracle::Pool::kBf16 : Oracle::Pool::kE4m3;
}

// Root mean square of the logits' errors, the largest of all positions; `relative`: over that of the
// logits themselves.
double measured_error(const Weights& weights, KvFormat format, const Tokens& text, bool relative) {
  const auto got = fast_logits(weights, format, text);
  Oracle oracle(weights, oracle_pool(format));
  auto sequence = oracle.begin();
  double worst = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto exact = oracle.next(sequence, text[i]);
    double squares = 0, errors = 0;
    for (std::size_t j = 0; j < exact.size(); ++j) {
      const double error = static_cast<double>(got[i][j]) - exact[j];
      errors += error * error;
      squares += exact[j] * exact[j];
    }
    EXPECT_TRUE(std::isfinite(errors));
    const double count = static_cast<double>(exact.size());
    worst = std::max(worst, std::sqrt(errors / (relative ? squares : count)));
  }
  return worst;
}

constexpr const char* kFamilies[] = {"tiny-glm-5", "tiny-deepseek-v3.2", "tiny-deepseek-v3",
                                     "tiny-qwen3-moe", "tiny-llama"};

TEST(Agreement, OfChoicesInF32) {
  for (const char* name : kFamilies)
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kE4m3}) {
      const RandomWeights random = model(small(name), Scheme::kF32);
      const Tokens text = prompt(40, random.weights.config.vocab, 3);
      const double error = measured_error(random.weights, format, text, true);
      EXPECT_LT(error, 1e-3) << name << " " << format_name(format);
    }
}

// Activations are BF16 for BF16, FP8 and MXFP4 weights, int8 by blocks of 32 or 256 for ggml's; an E4M3
// pool rounds a share of its numbers the other way. Tolerances are twice what was measured.
TEST(Agreement, OfEachFormat) {
  struct Case {
    Scheme scheme;
    double bf16_pool, e4m3_pool;
  };
  const Case cases[] = {{Scheme::kBf16, 1e-2, 3e-2},  {Scheme::kFp8, 1e-2, 3e-2},
                        {Scheme::kMxfp4, 2e-2, 3e-2}, {Scheme::kQ8_0, 3e-2, 4e-2},
                        {Scheme::kQ6_K, 4e-2, 6e-2},  {Scheme::kQ4_K, 4e-2, 6e-2}};
  for (const char* name : {"tiny-glm-5", "tiny-deepseek-v3", "tiny-qwen3-moe", "tiny-llama"})
    for (const Case& one : cases) {
      const RandomWeights random = model(without_choices(small(name)), one.scheme);
      const Tokens text = prompt(10, random.weights.config.vocab, 4);
      for (const KvFormat format : {KvFormat::kBf16, KvFormat::kE4m3})
        EXPECT_LT(measured_error(random.weights, format, text, true),
                  format == KvFormat::kBf16 ? one.bf16_pool : one.e4m3_pool)
            << name << " " << scheme_name(one.scheme) << " " << format_name(format);
    }
}

// The experts and MLPs of an NVFP4 model (W4A4) in one whose other weights are F32: what reaches the
// FP4 rounding is equal but for sums in float, and so are nearly all codes.
TEST(Agreement, OfNvfp4) {
  for (const char* name : kFamilies) {
    RandomWeights narrow = model(small(name), Scheme::kNvfp4);
    const RandomWeights wide = model(small(name), Scheme::kF32);
    Weights mixed = wide.weights;
    for (std::size_t layer = 0; layer < mixed.layers.size(); ++layer) {
      mixed.layers[layer].dense = narrow.weights.layers[layer].dense;
      mixed.layers[layer].experts = narrow.weights.layers[layer].experts;
      mixed.layers[layer].shared = narrow.weights.layers[layer].shared;
    }
    const Tokens text = prompt(20, mixed.config.vocab, 5);
    const double error = measured_error(mixed, KvFormat::kE4m3, text, true);
    EXPECT_LT(error, 1e-3) << name;
  }
}

struct Compared {
  int positions = 0, compared = 0;
};

// Greedy tokens of the engine against the oracle's. Where the oracle's two best logits are closer
// than 5 x the measured error nothing is compared; behind such a place the engine goes on from the
// oracle's text.
Compared compare_greedy(Oracle& oracle, const Weights& weights, KvFormat format, double error,
                        std::uint64_t seed) {
  constexpr std::int64_t kTokens = 64;
  Tokens text = prompt(8, weights.config.vocab, seed);
  auto sequence = oracle.begin();
  Oracle::Vector logits;
  for (const std::int32_t token : text) logits = oracle.next(sequence, token);
  std::vector<bool> clear;
  Tokens answer;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    const auto best = std::max_element(logits.begin(), logits.end());
    answer.push_back(static_cast<std::int32_t>(best - logits.begin()));
    const double highest = *best;
    *best = -1e300;
    clear.push_back(highest - *std::max_element(logits.begin(), logits.end()) >= 5 * error);
    logits = oracle.next(sequence, answer.back());
  }
  EngineOptions options;
  options.threads = 2;
  options.isa = best_isa();
  options.pool_format = format;
  options.pool_tokens = options.longest = kLongest;
  auto engine = Engine::make(weights, options);
  EXPECT_TRUE(engine.ok());
  Compared result;
  for (std::size_t next = 0; next < answer.size();) {
    Request request;
    request.prompt = text;
    request.new_tokens = kTokens - static_cast<std::int64_t>(next);
    const auto number = (*engine)->submit(request);
    while (!(*engine)->idle()) static_cast<void>((*engine)->step());
    const auto got = (*engine)->generated(*number);
    bool go_on = true;
    for (std::size_t i = 0; i < got.size() && go_on; ++i, ++next) {
      ++result.positions;
      if (clear[next]) {
        ++result.compared;
        EXPECT_EQ(got[i], answer[next]) << "token " << next << " of seed " << seed;
      }
      go_on = got[i] == answer[next];
      text.push_back(answer[next]);
    }
  }
  return result;
}

TEST(Agreement, OfGreedyTokens) {
  struct Case {
    const char* name;
    Scheme scheme;
    KvFormat pool;
    bool choices;
  };
  const Case cases[] = {{"tiny-glm-5", Scheme::kF32, KvFormat::kE4m3, true},
                        {"tiny-glm-5", Scheme::kBf16, KvFormat::kBf16, false},
                        {"tiny-glm-5", Scheme::kFp8, KvFormat::kE4m3, false},
                        {"tiny-llama", Scheme::kBf16, KvFormat::kBf16, false},
                        {"tiny-llama", Scheme::kFp8, KvFormat::kE4m3, false}};
  for (const Case& one : cases) {
    const RandomWeights random =
        model(one.choices ? small(one.name) : without_choices(small(one.name)), one.scheme);
    const Weights& weights = random.weights;
    const Tokens text = prompt(24, weights.config.vocab, 99);
    const double error = measured_error(weights, one.pool, text, false);
    Oracle oracle(weights, oracle_pool(one.pool));
    for (const std::uint64_t seed : {11U, 12U, 13U}) {
      const Compared got = compare_greedy(oracle, weights, one.pool, error, seed);
      std::printf("%s, weights %s, pool %s, seed %d: %d of %d positions compared\n", one.name,
                  std::string(scheme_name(one.scheme)).c_str(),
                  std::string(format_name(one.pool)).c_str(), static_cast<int>(seed), got.compared,
                  got.positions);
      EXPECT_EQ(got.positions, 64);
      EXPECT_GE(2 * got.compared, got.positions);
    }
  }
}

}  // namespace
}  // namespace culprit::lab
