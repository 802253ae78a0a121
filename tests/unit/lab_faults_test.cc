// Faults cost time and nothing else: tokens and logits stay the same to the bit, each with every way of
// launching that it allows.
#include <gtest/gtest.h>

#include "lab/engine/engine.h"
#include "lab/model/random_model.h"
#include "lab/tool/pairs.h"

namespace culprit::lab {
namespace {

struct Answer {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<float>> logits;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer decode(const Weights& weights, const EngineOptions& options) {
  constexpr std::size_t kRequests = 3;
  const auto engine = Engine::make(weights, options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().what);
  for (std::size_t i = 0; i < kRequests; ++i) {
    Request request;
    for (std::size_t t = 0; t < 5 + 20 * i; ++t)
      request.prompt.push_back(static_cast<std::int32_t>((17 * t + 5 * i) % 500));
    request.new_tokens = 14;
    if (i == 1) request.sampling = {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = i};
    EXPECT_TRUE((*engine)->submit(request).ok());
  }
  Answer answer;
  while (!(*engine)->idle()) {
    static_cast<void>((*engine)->step());
    for (std::size_t i = 0; i < kRequests; ++i) {
      const auto logits = (*engine)->last_logits(i);
      answer.logits.emplace_back(logits.begin(), logits.end());
    }
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    const auto tokens = (*engine)->generated(i);
    answer.tokens.emplace_back(tokens.begin(), tokens.end());
  }
  return answer;
}

EngineOptions options_for(KvFormat format) {
  EngineOptions options;
  options.threads = 2;
  options.isa = best_isa();
  options.pool_format = format;
  options.pool_tokens = 256;
  options.longest = 96;
  options.batch = 3;
  options.chunk = 16;
  return options;
}

std::vector<Faults> each_fault() {
  std::vector<Faults> all;
  for (const FaultRow& row : fault_rows()) {
    Faults& faults = all.emplace_back();
    if (row.on != nullptr) faults.*row.on = true;
    if (row.amount != nullptr) faults.*row.amount = row.unit == "N" ? 2 : 1'000;
  }
  return all;
}

TEST(Faults, ChangeNoTokenAndNoLogit) {
  for (const std::string_view name : {"tiny-glm-5", "tiny-llama", "tiny-qwen3-moe"}) {
    auto config = preset(name);
    ASSERT_TRUE(config.ok());
    auto weights = random_weights({std::move(*config), Scheme::kFp8, 3});
    ASSERT_TRUE(weights.ok());
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kE4m3}) {
      EngineOptions options = options_for(format);
      const Answer wanted = decode(weights->weights, options);
      std::size_t row = 0;
      for (const Faults& faults : each_fault()) {
        options.faults = faults;
        for (const LaunchMode mode : {LaunchMode::kEager, LaunchMode::kGraph}) {
          options.launch = mode;
          if (mode == LaunchMode::kGraph && faults.sync_per_layer) continue;
          EXPECT_TRUE(decode(weights->weights, options) == wanted)
              << name << " " << fault_rows()[row].name;
        }
        ++row;
      }
    }
  }
}

TEST(Faults, AreSetByName) {
  Faults faults;
  EXPECT_TRUE(set_fault("host-delay=30", faults).ok());
  EXPECT_EQ(faults.host_delay, 30'000);
  EXPECT_TRUE(set_fault("pool-copy", faults).ok());
  EXPECT_TRUE(faults.pool_copy);
  for (const std::string_view wrong :
       {"host-delay", "host-delay=", "host-delay=-1", "pool-copy=1", ""})
    EXPECT_FALSE(set_fault(wrong, faults).ok()) << wrong;
  const Status near = set_fault("pool-cop", faults);
  ASSERT_FALSE(near.ok());
  EXPECT_NE(near.error().hint.find("pool-copy"), std::string::npos);
}

// Both sides of every pair are command lines that the bench takes, and differ.
TEST(Pairs, AreCommandLines) {
  for (const Pair& pair : pairs())
    for (const bool tiny : {false, true})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const DrawnPair lines = drawn(pair, tiny, seed);
        EXPECT_NE(lines.before, lines.after) << pair.name;
        for (const std::string& line : {lines.before, lines.after}) {
          std::vector<std::string_view> words{"bench"};
          for (std::size_t at = 0; at < line.size();) {
            const std::size_t end = std::min(line.find(' ', at), line.size());
            if (end > at) words.push_back(std::string_view(line).substr(at, end - at));
            at = end + 1;
          }
          const auto options = parse(words);
          EXPECT_TRUE(options.ok()) << line << ": " << (options.ok() ? "" : options.error().what);
        }
      }
}

}  // namespace
}  // namespace culprit::lab
