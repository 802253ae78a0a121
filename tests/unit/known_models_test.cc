// Models under a deployment: the tensors that one rank holds.
#include "known/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <map>
#include <set>

namespace culprit::known {
namespace {

// First tensor of each name, which is the likeliest.
std::map<std::string, Tensor> by_name(const std::vector<Tensor>& all) {
  std::map<std::string, Tensor> named;
  for (const Tensor& tensor : all) named.emplace(tensor.name, tensor);
  return named;
}

Deployment tp8() {
  Deployment deployment;
  deployment.tp = 8;
  deployment.pool_tokens = 495'488;
  deployment.page_size = 64;
  return deployment;
}

using Shape = std::vector<std::int64_t>;

TEST(Tensors, Glm5AtTp8HasTheFiguresOfTheFoundingCase) {
  const auto model = load_model("nvidia/GLM-5-NVFP4");
  ASSERT_TRUE(model.ok());
  const auto all = tensors(*model, tp8());
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().name, "kv_pool");
  EXPECT_EQ(all.front().shape, (Shape{495'552, 1, 576}));
  EXPECT_EQ(all.front().elements, 285'437'952);
  EXPECT_EQ(all.front().dtype, Dtype::kFp8E4m3);
  EXPECT_EQ(all.front().per_rank, 78);
  EXPECT_TRUE(all.front().follows_pool);

  auto named = by_name(all);
  const struct {
    const char* name;
    std::int64_t elements, per_rank;
    Dtype dtype;
  } kExpected[] = {
      {"w13", 805'306'368, 75, Dtype::kFp4},
      {"w2", 402'653'184, 75, Dtype::kFp4},
      {"q_a", 12'582'912, 78, Dtype::kBf16},
      {"q_b", 4'194'304, 78, Dtype::kBf16},
      {"kv_a", 3'538'944, 78, Dtype::kBf16},
      {"kv_b", 1'835'008, 78, Dtype::kBf16},
      {"o_proj", 12'582'912, 78, Dtype::kBf16},
      {"router", 1'572'864, 75, Dtype::kBf16},
      {"gate_up", 18'874'368, 3, Dtype::kFp4},
      {"down", 9'437'184, 3, Dtype::kFp4},
      {"shared_gate_up", 3'145'728, 75, Dtype::kFp4},
      {"shared_down", 1'572'864, 75, Dtype::kFp4},
      {"lm_head", 118'947'840, 1, Dtype::kBf16},
      {"embed", 118'947'840, 1, Dtype::kBf16},
      {"index_q", 8'388'608, 78, Dtype::kBf16},
      {"index_k", 786'432, 78, Dtype::kBf16},
      {"index_weights", 196'608, 78, Dtype::kBf16},
      {"w13_scale", 50'331'648, 75, Dtype::kFp8E4m3},
      {"w2_scale", 25'165'824, 75, Dtype::kFp8E4m3},
  };
  for (const auto& expected : kExpected) {
    ASSERT_TRUE(named.count(expected.name)) << expected.name;
    const Tensor& tensor = named[expected.name];
    EXPECT_EQ(tensor.elements, expected.elements) << expected.name;
    EXPECT_EQ(tensor.per_rank, expected.per_rank) << expected.name;
    EXPECT_EQ(tensor.dtype, expected.dtype) << expected.name;
    EXPECT_TRUE(tensor.is_weight) << expected.name;
  }
  EXPECT_EQ(named["w13"].shape, (Shape{256, 512, 6144}));
  EXPECT_EQ(named["w13"].from, "256 experts x 2 x 2048/8 x 6144");
  EXPECT_EQ(named["index_pool"].shape, (Shape{7743, 64 * 132}));
  EXPECT_EQ(named["kv_pool_scaled"].shape, (Shape{495'552, 1, 656}));
  EXPECT_EQ(named.count("logits"), 0u);  // no batch given
}

// 743.9 B parameters as published, summed over the layers of one rank holding everything.
TEST(Tensors, OneRankHoldsEveryParameterOfGlm5) {
  const auto model = load_model("zai-org/GLM-5");
  ASSERT_TRUE(model.ok());
  const std::set<std::string> kParts = {
      "w13",           "w2",      "router", "shared_gate_up", "shared_down", "q_a",
      "q_b",           "kv_a",    "kv_b",   "o_proj",         "index_q",     "index_k",
      "index_weights", "gate_up", "down",   "lm_head",        "embed"};
  std::int64_t parameters = 0;
  for (const Tensor& tensor : tensors(*model, {})) {
    if (kParts.count(tensor.name)) parameters += tensor.elements * tensor.per_rank;
  }
  // Norms and biases, which no list of matrices has, are a few million.
  EXPECT_NEAR(static_cast<double>(parameters), 743'911'218'432.0, 5e6);
}

TEST(Tensors, AnUnknownPageSizeGivesEachLikelyPool) {
  const auto glm = load_model("zai-org/GLM-5");
  Deployment deployment;
  deployment.tp = 8;
  deployment.pool_tokens = 495'488;
  std::vector<std::int64_t> rows;
  for (const Tensor& tensor : tensors(*glm, deployment)) {
    if (tensor.name == "kv_pool") rows.push_back(tensor.shape[0]);
  }
  EXPECT_EQ(rows, (std::vector<std::int64_t>{495'552, 495'488}));
  rows.clear();
  const auto deepseek = load_model("deepseek-ai/DeepSeek-V3");
  for (const Tensor& tensor : tensors(*deepseek, deployment)) {
    if (tensor.name == "kv_pool") rows.push_back(tensor.shape[0]);
  }
  EXPECT_EQ(rows, (std::vector<std::int64_t>{495'489, 495'552, 495'488}));
  deployment.pool_tokens.reset();
  for (const Tensor& tensor : tensors(*glm, deployment)) EXPECT_FALSE(tensor.follows_pool);
}

TEST(Tensors, GroupedQueryModelsShardTheirHeads) {
  const auto model = load_model("Qwen3-8B");
  ASSERT_TRUE(model.ok());
  Deployment deployment;
  deployment.tp = 2;
  deployment.pool_tokens = 1000;
  deployment.page_size = 1;
  auto named = by_name(tensors(*model, deployment));
  EXPECT_EQ(kv_row_elements(*model, deployment), 4 * 128);
  EXPECT_EQ(named["kv_pool"].shape, (Shape{1001, 4, 128}));
  EXPECT_EQ(named["kv_pool"].per_rank, 72);  // K and V of 36 layers
  EXPECT_EQ(named["qkv"].shape, (Shape{16 * 128 + 2 * 512, 4096}));
  EXPECT_EQ(named["q"].shape, (Shape{2048, 4096}));
  EXPECT_EQ(named["k"].shape, (Shape{512, 4096}));
  EXPECT_EQ(named["o_proj"].shape, (Shape{4096, 2048}));
  EXPECT_EQ(named["gate_up"].shape, (Shape{12'288, 4096}));
  EXPECT_EQ(named["gate_up"].per_rank, 36);
  EXPECT_EQ(named.count("w13"), 0u);
  deployment.tp = 16;  // more ranks than KV heads: each head on two of them
  EXPECT_EQ(kv_row_elements(*model, deployment), 128);
}

TEST(Tensors, ExpertParallelRanksHoldWholeExperts) {
  const auto model = load_model("Qwen/Qwen3-235B-A22B");
  Deployment deployment;
  deployment.tp = deployment.ep = 8;
  auto named = by_name(tensors(*model, deployment));
  EXPECT_EQ(named["w13"].shape, (Shape{16, 3072, 4096}));
  EXPECT_EQ(named["w2"].shape, (Shape{16, 4096, 1536}));
  EXPECT_EQ(named["w13"].per_rank, 94);
  EXPECT_EQ(named.count("gate_up"), 0u);  // no dense layer, whatever intermediate_size says
}

TEST(Tensors, HybridModelsCountTheLayersOfEachKind) {
  Deployment deployment;
  deployment.pool_tokens = 100;
  deployment.page_size = 1;
  const struct {
    const char* name;
    std::int64_t pools, moe;
  } kHybrids[] = {{"moonshotai/Kimi-K3", 24, 92},
                  {"Qwen/Qwen3.5-397B-A17B", 30, 60},
                  {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 12, 23},
                  {"Llama-4-Maverick-17B-128E-Instruct", 96, 24},
                  {"MiMo-V2-Flash", 96, 47}};
  for (const auto& hybrid : kHybrids) {
    const auto model = load_model(hybrid.name);
    ASSERT_TRUE(model.ok()) << hybrid.name;
    auto named = by_name(tensors(*model, deployment));
    EXPECT_EQ(named["kv_pool"].per_rank, hybrid.pools) << hybrid.name;
    EXPECT_EQ(named["w13"].per_rank, hybrid.moe) << hybrid.name;
  }
}

// What is not known is left out, never guessed: no pool and no K or V for these two designs.
TEST(Tensors, UnknownAttentionLayoutsGiveNoPool) {
  Deployment deployment;
  deployment.pool_tokens = 1000;
  for (const char* name :
       {"deepseek-ai/DeepSeek-V4-Flash", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"}) {
    const auto model = load_model(name);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(kv_row_elements(*model, deployment), 0) << name;
    for (const Tensor& tensor : tensors(*model, deployment)) {
      EXPECT_FALSE(tensor.follows_pool) << name;
      EXPECT_NE(tensor.name, "k") << name;
      EXPECT_NE(tensor.name, "qkv") << name;
    }
  }
}

TEST(Tensors, BatchAddsActivationsAndLiveTokensTheirRows) {
  const auto model = load_model("zai-org/GLM-5");
  Deployment deployment = tp8();
  deployment.batch = 4;
  deployment.active_tokens = 1200;
  auto named = by_name(tensors(*model, deployment));
  EXPECT_EQ(named["hidden"].elements, 4 * 6144);
  EXPECT_EQ(named["logits"].elements, 4 * 19'360);
  EXPECT_EQ(named["logits_gathered"].elements, 4 * 154'880);
  EXPECT_EQ(named["router_logits"].elements, 4 * 256);
  EXPECT_EQ(named["kv_active"].elements, 1200 * 576);
  EXPECT_FALSE(named["hidden"].is_weight);
  EXPECT_FALSE(named["kv_active"].is_weight);
}

TEST(Tensors, AbsurdDeploymentsOverflowNothing) {
  const auto model = load_model("zai-org/GLM-5");
  for (const std::int64_t wild : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{INT64_MAX},
                                  std::int64_t{INT64_MIN}, std::int64_t{7}}) {
    Deployment deployment;
    deployment.tp = deployment.ep = deployment.attention_dp = wild;
    deployment.pool_tokens = deployment.page_size = deployment.active_tokens = deployment.batch =
        wild;
    for (const Tensor& tensor : tensors(*model, deployment)) {
      EXPECT_GT(tensor.elements, 0) << tensor.name << ' ' << wild;
    }
    (void)kv_row_elements(*model, deployment);
  }
}

TEST(Models, EveryRowOfTheTableGivesTensors) {
  const auto names = model_names();
  EXPECT_GE(names.size(), 86u);
  for (const std::string& name : names) {
    const auto model = load_model(name);
    ASSERT_TRUE(model.ok()) << name;
    EXPECT_GT(model->hidden, 0) << name;
    EXPECT_GT(model->layers, 0) << name;
    EXPECT_GT(model->vocab, 0) << name;
    EXPECT_NE(model->weight_dtype, Dtype::kUnknown) << name;
    EXPECT_LE(model->moe_count() + model->dense_count(), model->layers) << name;
    auto named = by_name(tensors(*model, {}));
    EXPECT_TRUE(named.count("lm_head")) << name;
    EXPECT_EQ(named.count("w13") > 0, model->experts > 0) << name;
  }
}

TEST(Models, NamesAreFoundWithoutCaseAndWithoutOwner) {
  EXPECT_EQ(load_model("glm-5")->name, "zai-org/GLM-5");
  EXPECT_EQ(load_model("DEEPSEEK-AI/deepseek-v3")->name, "deepseek-ai/DeepSeek-V3");
  EXPECT_EQ(load_model("GLM-5-NVFP4")->kv_dtype, Dtype::kFp8E4m3);
  EXPECT_FALSE(load_model("zai-org/GLM-5")->kv_dtype.has_value());
}

TEST(Models, UnknownNamesAndMissingFilesSayWhatToDo) {
  const auto slip = load_model("zai-org/GML-5");
  ASSERT_FALSE(slip.ok());
  EXPECT_EQ(slip.error().code, Error::Code::kUsage);
  EXPECT_NE(slip.error().hint.find("GLM-5"), std::string::npos);
  const auto missing = load_model("./nowhere/config.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Error::Code::kCannotRead);
  EXPECT_EQ(missing.error().where, "./nowhere/config.json");
  const auto empty = load_model("");
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().hint, "");
}

}  // namespace
}  // namespace culprit::known
