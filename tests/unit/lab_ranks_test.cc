// Several ranks: sums of one order and the same bits everywhere; a model in parts gives what it gives
// whole, for each family, in each format.
#include "ranks/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "lab/engine/engine.h"
#include "lab/model/random_model.h"
#include "lab/tool/ranks.h"
#include "ranks/threads.h"
#include "unit/lab_forward.h"
#include "unit/lab_ranks_models.h"

namespace culprit::lab {
namespace {

using Rows = std::vector<std::vector<float>>;

// work(rank) on a thread of its own for each rank.
void on_all(int size, const std::function<void(Ranks&)>& work) {
  ThreadRanks ranks(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { work(ranks[rank]); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Ranks, AddUpInTheOrderOfRanks) {
  for (const int size : {1, 2, 3, 4})
    for (const std::size_t count : {1U, 7U, 40'000U, 100'000U}) {  // of one piece and of several
      Rows given(static_cast<std::size_t>(size)), got(given.size());
      std::mt19937 random(1);
      std::normal_distribution<float> normal(0, 1e4F);
      for (auto& numbers : given)
        for (std::size_t i = 0; i < count; ++i) numbers.push_back(normal(random));
      std::vector<float> wanted = given[0];
      for (std::size_t rank = 1; rank < given.size(); ++rank)
        for (std::size_t i = 0; i < count; ++i) wanted[i] += given[rank][i];
      on_all(size, [&](Ranks& ranks) {
        const auto rank = static_cast<std::size_t>(ranks.rank());
        got[rank] = given[rank];
        ranks.all_reduce(got[rank].data(), static_cast<std::int64_t>(count));
      });
      for (const auto& numbers : got) EXPECT_EQ(numbers, wanted);
    }
}

TEST(Ranks, AgreeOnTheFirstFault) {
  std::vector<std::string> said(3);
  on_all(3, [&](Ranks& ranks) {
    const Error fault{Error::Code::kBadInput, "broken", "a file", "mend it"};
    const Status mine = ranks.rank() > 0 ? Status(fault) : Status(Ok{});
    EXPECT_TRUE(agreed(&ranks, Ok{}).ok());
    const Status all = agreed(&ranks, mine);
    if (!all.ok())
      said[static_cast<std::size_t>(ranks.rank())] =
          all.error().where + ": " + all.error().what + "; " + all.error().hint;
  });
  for (const std::string& text : said) EXPECT_EQ(text, "rank 1: a file: broken; mend it");
}

TEST(Ranks, ShareTheCores) {
  const std::vector<int> cores{0, 1, 4, 5, 6};
  EXPECT_EQ(cores_of(cores, 0, 1), cores);
  EXPECT_EQ(cores_of(cores, 0, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(cores_of(cores, 1, 2), (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(cores_of({2, 3}, 0, 4), (std::vector<int>{2}));
  EXPECT_EQ(cores_of({2, 3}, 3, 4), (std::vector<int>{3}));
  EXPECT_TRUE(cores_of({}, 0, 2).empty());
}

struct Parallel {
  int size = 1;
  std::int64_t expert_groups = 1;
};

// A model in as many parts as there are ranks.
std::vector<RandomWeights> parts_of(const RandomModel& model, const Parallel& parallel) {
  std::vector<RandomWeights> parts;
  for (int rank = 0; rank < parallel.size; ++rank) {
    auto part = random_weights(model, {rank, parallel.size, parallel.expert_groups}, 1);
    EXPECT_TRUE(part.ok()) << part.error().what;
    parts.push_back(std::move(*part));
  }
  return parts;
}

Rows logits_of(const std::vector<RandomWeights>& parts, KvFormat format, const Tokens& text) {
  if (parts.size() == 1) return fast_logits(parts[0].weights, format, text, 1);
  std::vector<Rows> all(parts.size());
  on_all(static_cast<int>(parts.size()), [&](Ranks& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    all[rank] = fast_logits(parts[rank].weights, format, text, 1, &ranks);
  });
  for (const Rows& one : all) EXPECT_EQ(one, all[0]);  // bit for bit
  return all[0];
}

// Root mean square of the differences over that of the logits, the largest of all positions.
double difference(const Rows& got, const Rows& wanted) {
  double worst = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    double squares = 0, errors = 0;
    for (std::size_t i = 0; i < wanted[row].size(); ++i) {
      const double value = static_cast<double>(wanted[row][i]);
      const double error = static_cast<double>(got[row].at(i)) - value;
      squares += value * value;
      errors += error * error;
    }
    EXPECT_TRUE(std::isfinite(errors));
    worst = std::max(worst, std::sqrt(errors / squares));
  }
  return worst;
}

constexpr Parallel kParallels[] = {{2, 1}, {4, 1}, {4, 2}};

// What differs is the order in which floats are added up: 1e-7 of a sum. Rounding hides that nearly
// always, and makes a whole step of it where a number stands at a border: of the pool in F32 (measured
// 2.4e-5), of activations in BF16 (4.5e-5), of an FP8 pool (2.7e-3), of FP4 codes (2.3e-4). Tolerances
// leave room for a few such numbers.
TEST(Ranks, GiveWhatOneGives) {
  struct Case {
    Scheme scheme;
    KvFormat pool;
    bool choices;
    double tolerance;
  };
  const Case cases[] = {{Scheme::kF32, KvFormat::kBf16, true, 1e-4},
                        {Scheme::kF32, KvFormat::kE4m3, true, 1e-3},
                        {Scheme::kBf16, KvFormat::kBf16, false, 1e-3},
                        {Scheme::kFp8, KvFormat::kE4m3, false, 1e-2},
                        {Scheme::kNvfp4, KvFormat::kE4m3, false, 1e-2}};
  for (const char* name : kRankFamilies)
    for (const Case& one : cases) {
      const ModelConfig config = one.choices ? divisible(name) : without_choices(divisible(name));
      const RandomModel model{config, one.scheme, 1};
      const Tokens text = prompt(12, config.vocab, 3);
      const Rows whole = logits_of(parts_of(model, {1, 1}), one.pool, text);
      for (const Parallel& parallel : kParallels) {
        if (parallel.expert_groups > 1 && config.router.experts == 0) continue;
        const double error =
            difference(logits_of(parts_of(model, parallel), one.pool, text), whole);
        EXPECT_LT(error, one.tolerance)
            << name << " " << scheme_name(one.scheme) << " tp " << parallel.size << " ep "
            << parallel.expert_groups << ": " << error;
      }
    }
}

// A rank's part is needed: without the others the scores are far off.
TEST(Ranks, APartByItselfIsNotTheModel) {
  const RandomModel model{divisible("tiny-glm-5"), Scheme::kF32, 1};
  const Tokens text = prompt(8, 128, 3);
  const auto parts = parts_of(model, {2, 1});
  Rows whole = logits_of(parts_of(model, {1, 1}), KvFormat::kBf16, text);
  for (auto& row : whole) row.resize(row.size() / 2);
  EXPECT_GT(difference(fast_logits(parts[0].weights, KvFormat::kBf16, text), whole), 0.1);
}

struct Answers {
  std::vector<Tokens> tokens;
  std::vector<std::vector<double>> margins;  // between the two best scores of each token
  std::int64_t evicted = 0;
};

// Greedy requests, and one that draws, through an engine whose pool is too small for all of them.
Answers answers_of(const Weights& weights, Ranks* ranks) {
  constexpr std::size_t kRequests = 4;
  EngineOptions options;
  options.threads = 1;
  options.isa = best_isa();
  options.pool_tokens = 100;
  options.longest = 64;
  options.batch = 3;
  options.chunk = 16;
  options.ranks = ranks;
  auto engine = Engine::make(weights, options);
  EXPECT_TRUE(engine.ok());
  for (std::size_t i = 0; i < kRequests; ++i) {
    Request request;
    request.prompt = prompt(5 + 8 * static_cast<std::int64_t>(i), weights.config.vocab, i);
    request.new_tokens = 24;
    if (i == 2) request.sampling = {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = 3};
    EXPECT_TRUE((*engine)->submit(request).ok());
  }
  Answers out;
  out.margins.resize(kRequests);
  while (!(*engine)->idle()) {
    out.evicted += (*engine)->step().evicted;
    for (std::size_t i = 0; i < kRequests; ++i) {
      const auto logits = (*engine)->last_logits(i);
      if (logits.empty()) continue;
      std::vector<float> best(logits.begin(), logits.end());
      std::partial_sort(best.begin(), best.begin() + 2, best.end(), std::greater<>());
      out.margins[i].push_back(static_cast<double>(best[0]) - static_cast<double>(best[1]));
    }
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    const auto tokens = (*engine)->generated(i);
    out.tokens.emplace_back(tokens.begin(), tokens.end());
  }
  return out;
}

TEST(Ranks, ChooseTheSameTokens) {
  for (const char* name : kRankFamilies) {
    const RandomModel model{divisible(name), Scheme::kF32, 2};
    const auto whole = parts_of(model, {1, 1});
    const Answers wanted = answers_of(whole[0].weights, nullptr);
    EXPECT_GT(wanted.evicted, 0);
    for (const Parallel& parallel : {Parallel{2, 1}, Parallel{4, 1}, Parallel{4, 4}}) {
      if (parallel.expert_groups > 1 && model.config.router.experts == 0) continue;
      const auto parts = parts_of(model, parallel);
      std::vector<Answers> got(parts.size());
      on_all(parallel.size, [&](Ranks& ranks) {
        const auto rank = static_cast<std::size_t>(ranks.rank());
        got[rank] = answers_of(parts[rank].weights, &ranks);
      });
      for (const Answers& one : got) EXPECT_EQ(one.tokens, got[0].tokens);
      EXPECT_EQ(got[0].evicted, wanted.evicted);
      std::size_t compared = 0, all = 0;
      for (std::size_t i = 0; i < wanted.tokens.size(); ++i) {
        all += wanted.tokens[i].size();
        // Scores have a size of 3 and differ by 1e-4 of it at most: within 5 x that is a tie.
        for (std::size_t t = 0; t < wanted.tokens[i].size() && wanted.margins[i][t] > 1.5e-3; ++t) {
          EXPECT_EQ(got[0].tokens[i][t], wanted.tokens[i][t])
              << name << " tp " << parallel.size << " request " << i << " token " << t;
          ++compared;
        }
      }
      EXPECT_GE(2 * compared, all) << name;
    }
  }
}

}  // namespace
}  // namespace culprit::lab
