// What a step says that it moves: every weight once, however many tokens share it; the pool's rows by
// strategy; nothing of a kernel forgotten.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lab/engine/engine.h"
#include "lab/engine/ledger.h"
#include "unit/lab_tiny_weights.h"

namespace culprit::lab {
namespace {

std::map<std::string, Ledger::Entry> entries_of(const Weights& weights, EngineOptions options,
                                                std::int64_t context) {
  options.threads = 2;
  options.isa = best_isa();
  options.chunk = 1;
  options.longest = 256;
  auto engine = Engine::make(weights, options);
  EXPECT_TRUE(engine.ok());
  for (std::int64_t i = 0; i < options.batch; ++i) {
    Request request;
    request.prompt = {static_cast<std::int32_t>(3 + i)};
    request.context = context;
    request.new_tokens = 8;
    EXPECT_TRUE((*engine)->submit(request).ok());
  }
  static_cast<void>((*engine)->step());
  Ledger ledger;
  (*engine)->set_recorder(&ledger);
  static_cast<void>((*engine)->step());
  std::map<std::string, Ledger::Entry> out;
  for (const Ledger::Entry& entry : ledger.entries()) {
    EXPECT_GE(entry.time, 0);
    EXPECT_GT(entry.read + entry.written, 0) << entry.last.kernel;
    EXPECT_TRUE(out.emplace(entry.last.kernel, entry).second) << entry.last.kernel;
  }
  return out;
}

std::int64_t input_bytes(const Matrix& matrix, std::int64_t tokens) {
  return tokens * prepared_bytes(activations_for(matrix), matrix.cols);
}

TEST(Ledger, CountsEachWeightOnceForAllTokens) {
  TinyWeights tiny(tiny_gqa());
  for (const std::int64_t batch : {1, 5}) {
    EngineOptions options;
    options.batch = batch;
    options.pool_tokens = 1024;
    const auto entries = entries_of(*tiny, options, 20);
    const GqaWeights& w = tiny->layers[0].gqa;
    const Ledger::Entry& qkv = entries.at("qkv");
    EXPECT_EQ(qkv.calls, 2);  // layers
    EXPECT_EQ(qkv.read,
              2 * (w.q.bytes() + w.k.bytes() + w.v.bytes() + 3 * input_bytes(w.q, batch)));
    EXPECT_EQ(qkv.written, 2 * batch * (w.q.rows + w.k.rows + w.v.rows) * 4);
    EXPECT_EQ(entries.at("lm_head").read,
              tiny->lm_head.bytes() + input_bytes(tiny->lm_head, batch));
    // Each expert at most once, at least as many as one token chooses.
    const std::int64_t expert = tiny->layers[1].experts[0].down.bytes();
    const std::int64_t inputs = batch * 2 * input_bytes(tiny->layers[1].experts[0].down, 1);
    const std::int64_t read = entries.at("expert down").read - inputs;
    EXPECT_EQ(read % expert, 0);
    EXPECT_GE(read / expert, 2);
    EXPECT_LE(read / expert, std::min<std::int64_t>(6, 2 * batch));
  }
}

TEST(Ledger, CountsThePoolByStrategy) {
  TinyWeights tiny(tiny_mla());
  const std::int64_t width = tiny->config.latent_dim(), layers = 2, batch = 3, alive = 22;
  EngineOptions options;
  options.batch = batch;
  options.pool_tokens = 1000;
  options.pool_format = KvFormat::kE4m3;
  options.reading = Reading::kPoolCast;
  auto entries = entries_of(*tiny, options, 20);
  EXPECT_EQ(entries.at("pool-cast").read, layers * 1001 * width);
  EXPECT_EQ(entries.at("pool-cast").written, layers * 1001 * width * 2);
  EXPECT_EQ(entries.at("attention").last.format, "bf16");
  options.reading = Reading::kGatherCast;
  entries = entries_of(*tiny, options, 20);
  EXPECT_EQ(entries.count("pool-cast"), 0U);
  EXPECT_EQ(entries.at("gather-cast").read, layers * batch * alive * width);
  EXPECT_EQ(entries.at("gather-cast").written, layers * batch * alive * width * 2);
  options.reading = Reading::kFused;
  entries = entries_of(*tiny, options, 20);
  EXPECT_EQ(entries.count("gather-cast"), 0U);
  EXPECT_EQ(entries.at("attention").last.format, "e4m3");
  const std::int64_t queries = tiny->config.heads * width * 4;
  EXPECT_EQ(entries.at("attention").read, layers * batch * (alive * width + queries));
  options.pool_format = KvFormat::kBf16;
  options.reading = Reading::kPoolCast;  // nothing to cast
  entries = entries_of(*tiny, options, 20);
  EXPECT_EQ(entries.count("pool-cast"), 0U);
}

}  // namespace
}  // namespace culprit::lab
