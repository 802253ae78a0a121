// A rank's share, drawn or copied out of a checkpoint, is a slice of the whole, scales included; what
// cannot be cut is told by name.
#include "lab/model/share.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/engine/resident.h"
#include "lab/model/random_model.h"
#include "unit/lab_ranks_models.h"

namespace culprit::lab {
namespace {

std::vector<Slot> slots_of(Weights& weights, Naming naming = Naming::kHf) {
  std::vector<Slot> slots = outer_slots(weights, naming);
  for (std::int64_t layer = 0; layer < weights.config.layers; ++layer)
    for (Slot& slot : layer_slots(weights, layer, naming)) slots.push_back(std::move(slot));
  return slots;
}

// Where an extent of `part` values begins in one of `whole`: rank by rank; the ranks that share a KV
// head stand together.
std::int64_t first_of(std::int64_t whole, std::int64_t part, const Shard& shard) {
  const std::int64_t parts = whole / part;
  return parts >= shard.of ? shard.rank * part : shard.rank / (shard.of / parts) * part;
}

void expect_slice(const Slot& of_whole, const Slot& of_share, Shard shard) {
  const Matrix &all = *of_whole.matrix, &part = *of_share.matrix;
  ASSERT_EQ(part.format, all.format) << of_whole.name;
  EXPECT_EQ(part.scale, all.scale);
  EXPECT_EQ(part.input_scale, all.input_scale);
  const std::int64_t row0 = first_of(all.rows, part.rows, shard);
  const std::int64_t col0 = first_of(all.cols, part.cols, shard);
  std::vector<float> wide(static_cast<std::size_t>(all.cols));
  std::vector<float> narrow(static_cast<std::size_t>(part.cols));
  for (std::int64_t row = 0; row < part.rows; ++row) {
    dequantize_row(all, row0 + row, wide.data());
    dequantize_row(part, row, narrow.data());
    ASSERT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin() + col0))
        << of_whole.name << " rank " << shard.rank << " of " << shard.of << ", row " << row;
  }
}

// Every tensor that the rank holds, and none that it does not.
void expect_share(Weights& whole, Weights& share, const Shard& shard) {
  const auto of_whole = slots_of(whole), of_share = slots_of(share);
  ASSERT_EQ(of_whole.size(), of_share.size());
  for (std::size_t i = 0; i < of_whole.size(); ++i) {
    const Slot& slot = of_whole[i];
    if (slot.matrix == nullptr) {
      EXPECT_EQ(*of_share[i].vector, *slot.vector);
      continue;
    }
    Shard among = shard;
    if (slot.expert >= 0 && shard.expert_groups > 1) {
      among.of = shard.of / shard.expert_groups;
      among.rank = shard.rank % among.of;
      const std::int64_t each = whole.config.router.experts / shard.expert_groups;
      const bool own = slot.expert / each == shard.rank / among.of;
      EXPECT_EQ(of_share[i].matrix->empty(), !own) << slot.name;
      if (!own) continue;
    }
    ASSERT_FALSE(of_share[i].matrix->empty()) << slot.name;
    expect_slice(slot, of_share[i], among);
  }
}

TEST(Share, IsASliceOfTheWhole) {
  for (const char* name : kRankFamilies)
    for (const Scheme scheme : {Scheme::kBf16, Scheme::kFp8, Scheme::kNvfp4, Scheme::kQ8_0}) {
      const RandomModel model{divisible(name), scheme, 5};
      auto whole = random_weights(model);
      ASSERT_TRUE(whole.ok());
      Workers workers(1);
      for (const Shard shard : {Shard{1, 2}, Shard{2, 4}, Shard{3, 4, 4}, Shard{1, 4, 2}}) {
        auto drawn = random_weights(model, shard);
        ASSERT_TRUE(drawn.ok()) << drawn.error().what;
        expect_share(whole->weights, drawn->weights, shard);
        Weights copied = whole->weights;
        const auto pages = make_resident(copied, workers, shard);
        ASSERT_TRUE(pages.ok()) << pages.error().what;
        expect_share(whole->weights, copied, shard);
      }
    }
}

TEST(Share, OfGlm5IsWhatSglangGivesARank) {
  Weights weights;
  weights.config = *preset("glm-5");
  weights.layers.resize(4);
  const auto share = [&](std::string_view name, const Shard& shard) {
    for (std::int64_t layer : {0, 3})
      for (const Slot& slot : layer_slots(weights, layer, Naming::kHf))
        if (slot.name.ends_with(name)) return *share_of(weights.config, slot, {}, shard);
    ADD_FAILURE() << name;
    return Share{};
  };
  EXPECT_EQ(share("0.self_attn.q_b_proj.weight", {7, 8}).row, 7 * 8 * 256);
  EXPECT_EQ(share("0.self_attn.o_proj.weight", {7, 8}).col, 7 * 8 * 256);
  EXPECT_EQ(share("0.self_attn.q_a_proj.weight", {7, 8}).rows, 2048);
  EXPECT_EQ(share("0.self_attn.indexer.wq_b.weight", {7, 8}).rows, 32 * 128);
  EXPECT_EQ(share("0.mlp.gate_proj.weight", {7, 8}).rows, 1536);
  EXPECT_EQ(share("3.mlp.gate.weight", {7, 8}).rows, 256);
  EXPECT_EQ(share("3.mlp.experts.9.up_proj.weight", {7, 8}).rows, 256);
  EXPECT_EQ(share("3.mlp.shared_experts.down_proj.weight", {7, 8}).cols, 256);
  EXPECT_EQ(share("3.mlp.experts.255.up_proj.weight", {7, 8, 8}).rows, 2048);
  EXPECT_TRUE(share("3.mlp.experts.223.up_proj.weight", {7, 8, 8}).empty());
  EXPECT_EQ(share("3.mlp.shared_experts.down_proj.weight", {7, 8, 8}).cols, 256);
}

std::string fault(const ModelConfig& config, Scheme scheme, const Shard& shard) {
  auto drawn = random_weights({config, scheme, 1}, shard);
  auto whole = random_weights({config, scheme, 1});
  EXPECT_TRUE(whole.ok());
  Workers workers(1);
  const auto copied = make_resident(whole->weights, workers, shard);
  EXPECT_FALSE(drawn.ok() || copied.ok());
  if (drawn.ok() || copied.ok()) return "";
  EXPECT_FALSE(drawn.error().hint.empty());
  EXPECT_EQ(drawn.error().what, copied.error().what);
  return drawn.error().what;
}

TEST(Share, WhatCannotBeCutIsNamed) {
  const ModelConfig glm = *preset("tiny-glm-5");
  const auto has = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(fault(glm, Scheme::kBf16, {0, 3}), "model.embed_tokens.weight");
  ModelConfig odd = glm;
  odd.vocab = 513;
  has(fault(odd, Scheme::kBf16, {0, 3}),
      "q_b_proj.weight\" cannot be cut for 3 ranks: its 4 heads");
  // Blocks of 128 x 128 in FP8, of 16 in NVFP4, of 32 in Q8_0.
  has(fault(glm, Scheme::kFp8, {0, 2}), "q_b_proj.weight");
  has(fault(glm, Scheme::kFp8, {1, 2}), "192 rows are not whole e4m3 blocks of 128");
  odd = *preset("tiny-llama");
  odd.intermediate = 8 * 24;
  has(fault(odd, Scheme::kNvfp4, {3, 8}), "heads");
  odd.heads = odd.kv_heads = 8;
  has(fault(odd, Scheme::kNvfp4, {3, 8}), "mlp.down_proj.weight");
  has(fault(odd, Scheme::kNvfp4, {3, 8}), "24 columns are not whole nvfp4 blocks of 16");
  has(fault(odd, Scheme::kQ8_0, {3, 8}), "24 columns are not whole q8_0 blocks of 32");
  has(fault(glm, Scheme::kBf16, {4, 4}), "no rank 4 of 4");
  has(fault(glm, Scheme::kBf16, {-1, 4}), "no rank -1");
  has(fault(glm, Scheme::kBf16, {0, 4, 3}), "4 ranks do not make 3");
  odd = glm;
  odd.router.experts = 6, odd.router.groups = 1, odd.router.groups_kept = 1;
  has(fault(odd, Scheme::kBf16, {0, 4, 4}), "6 experts do not divide over 4");
}

}  // namespace
}  // namespace culprit::lab
