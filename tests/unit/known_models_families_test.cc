// One model of each family against its published number of parameters, from the config.json that its
// repository has, and against what engines make of it on one rank of several.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "known/models.h"

namespace culprit::known {
namespace {

Model from_config(const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("culprit-" + std::string(test->name()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "config.json";
  std::ofstream(path) << text;
  const auto model = load_model(path.string());
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(model.ok()) << text;
  return model.ok() ? *model : Model{};
}

bool is_scale(const Tensor& tensor) { return tensor.name.ends_with("_scale"); }

// Parameters of the whole model. Norms and biases are not in the list.
double parameters(const Model& model) {
  double total = 0;
  for (const Tensor& tensor : tensors(model, {})) {
    if (!tensor.is_weight || tensor.view || is_scale(tensor)) continue;
    total += static_cast<double>(tensor.elements) * static_cast<double>(tensor.per_rank);
  }
  return total;
}

std::map<std::string, Tensor> on_one_rank(const Model& model, std::int64_t tp,
                                          std::int64_t ep = 1) {
  Deployment deployment;
  deployment.tp = tp;
  deployment.ep = ep;
  std::map<std::string, Tensor> named;
  for (const Tensor& tensor : tensors(model, deployment)) named.emplace(tensor.name, tensor);
  return named;
}

using Shape = std::vector<std::int64_t>;

// Published totals: model cards and technical reports; those of three digits or fewer are rounded.
TEST(Families, RowsOfTheTableHaveTheirPublishedParameters) {
  const struct {
    const char* name;
    double billions, tolerance;
  } kPublished[] = {{"deepseek-ai/DeepSeek-V3", 671.026, 0.01},
                    {"moonshotai/Kimi-K2-Instruct", 1026.408, 0.01},
                    {"zai-org/GLM-5", 743.911, 0.01},
                    {"zai-org/GLM-4.7", 355, 4},
                    {"zai-org/GLM-4.5-Air", 106, 1},
                    {"Qwen/Qwen3-235B-A22B", 235.09, 0.05},
                    {"Qwen/Qwen3-30B-A3B", 30.53, 0.05},
                    {"Qwen/Qwen3-32B", 32.76, 0.05},
                    {"Qwen/Qwen3-8B", 8.19, 0.01},
                    {"Qwen/Qwen3-0.6B", 0.596, 0.001},  // the LM head is the embedding
                    {"meta-llama/Meta-Llama-3.1-8B", 8.03, 0.01},
                    {"meta-llama/Meta-Llama-3.1-70B", 70.55, 0.05},
                    {"meta-llama/Meta-Llama-3.1-405B", 405.85, 0.1},
                    {"mistralai/Mixtral-8x7B-v0.1", 46.70, 0.05},
                    {"mistralai/Mixtral-8x22B-v0.1", 140.62, 0.1},
                    {"openai/gpt-oss-120b", 116.83, 0.1},
                    {"openai/gpt-oss-20b", 20.91, 0.05},
                    {"MiniMaxAI/MiniMax-M2.5", 229, 1}};
  for (const auto& published : kPublished) {
    EXPECT_NEAR(parameters(*load_model(published.name)) / 1e9, published.billions,
                published.tolerance)
        << published.name;
  }
}

// 236 B; its shared experts are two of the routed size.
TEST(Families, DeepSeekV2) {
  const Model model = from_config(
      R"({"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 5120,
      "num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160, "n_shared_experts": 2,
      "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "vocab_size": 102400,
      "torch_dtype": "bfloat16"})");
  EXPECT_NEAR(parameters(model) / 1e9, 235.7, 0.1);
  auto named = on_one_rank(model, 8);
  EXPECT_EQ(named["shared_gate_up"].shape, (Shape{2 * 2 * 1536 / 8, 5120}));
  EXPECT_EQ(named["w_kc"].shape, (Shape{16, 128, 512}));
  EXPECT_EQ(named["w_vc"].shape, (Shape{16, 512, 128}));
  EXPECT_TRUE(named["w_kc"].view && named["w_vc"].view && named["qkv_a"].view);
  EXPECT_EQ(named["w_kc"].elements + named["w_vc"].elements, named["kv_b"].elements);
}

// 15.7 B; no low-rank queries.
TEST(Families, DeepSeekV2Lite) {
  const Model model = from_config(
      R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
      "num_key_value_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 10944, "moe_intermediate_size": 1408,
      "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
      "vocab_size": 102400})");
  EXPECT_NEAR(parameters(model) / 1e9, 15.7, 0.05);
  EXPECT_EQ(on_one_rank(model, 2)["q"].shape, (Shape{8 * 192, 2048}));
}

// 57.4 B; one shared expert of another size than the routed ones, experts in every layer.
TEST(Families, Qwen2Moe) {
  const Model model = from_config(
      R"({"model_type": "qwen2_moe", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "intermediate_size": 18944, "moe_intermediate_size": 2560, "num_experts": 64,
      "num_experts_per_tok": 8, "shared_expert_intermediate_size": 20480, "decoder_sparse_step": 1,
      "mlp_only_layers": [], "vocab_size": 151936, "tie_word_embeddings": false, "use_sliding_window": false,
      "sliding_window": 65536})");
  EXPECT_NEAR(parameters(model) / 1e9, 57.4, 0.05);
  EXPECT_EQ(model.moe_count(), 28);
  EXPECT_EQ(model.dense_count(), 0);
  EXPECT_EQ(model.sliding_layers, 0);
  EXPECT_EQ(on_one_rank(model, 4)["shared_down"].shape, (Shape{3584, 5120}));
}

TEST(Families, Qwen2Dense) {
  const Model model = from_config(
      R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": false})");
  EXPECT_NEAR(parameters(model) / 1e9, 7.615, 0.005);
  EXPECT_EQ(on_one_rank(model, 2)["qkv"].shape, (Shape{(14 + 2 * 2) * 128, 3584}));
}

TEST(Families, SparseStepsAndDenseLayersOfQwen) {
  const std::string head =
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 9, "num_attention_heads": 4,
      "num_experts": 8, "moe_intermediate_size": 32, "intermediate_size": 128, )";
  const Model every_third = from_config(head + R"("decoder_sparse_step": 3})");
  EXPECT_EQ(every_third.moe_count(), 3);
  EXPECT_EQ(every_third.dense_count(), 6);
  const Model two_dense =
      from_config(head + R"("decoder_sparse_step": 1, "mlp_only_layers": [0, 8]})");
  EXPECT_EQ(two_dense.moe_count(), 7);
  EXPECT_EQ(two_dense.dense_count(), 2);
}

// layers 0, 1, 2, then every fourth: 21 of 78, by the list or by the rule.
TEST(Families, Glm52SharesTheListsOfItsIndexers) {
  const std::string head =
      R"({"model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64,
      "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
      "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048, )";
  const Model by_rule = from_config(head + R"("index_topk_freq": 4, "index_skip_topk_offset": 3})");
  EXPECT_EQ(by_rule.index_count(), 21);
  EXPECT_EQ(by_rule.index_topk, 2048);
  EXPECT_EQ(load_model("zai-org/GLM-5.2")->index_count(), 21);
  EXPECT_EQ(from_config(head + R"("indexer_types": ["full", "shared", "full"]})").index_count(), 2);
  EXPECT_EQ(on_one_rank(by_rule, 8)["index_q"].per_rank, 21);
}

TEST(Families, GptOssSeesAWindowInEverySecondLayer) {
  const std::string head =
      R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 4,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
      "num_local_experts": 128, "experts_per_token": 4, "sliding_window": 128, "vocab_size": 201088, "quantization_config":
      {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]})";
  const Model model = from_config(
      head +
      R"(, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(model.sliding_layers, 2);
  EXPECT_EQ(from_config(head + "}").sliding_layers, 2);
  EXPECT_EQ(model.experts_per_token, 4);
  auto named = on_one_rank(model, 2);
  EXPECT_EQ(named["w13"].dtype, Dtype::kFp4);
  EXPECT_EQ(named["w13"].shape, (Shape{128, 2880, 2880}));
  EXPECT_EQ(named["w13_scale"].shape, (Shape{128, 2880, 90}));  // one E8M0 byte per 32
  EXPECT_EQ(named["w13_scale"].dtype, Dtype::kU8);
  EXPECT_EQ(named["qkv"].dtype, Dtype::kBf16);
}

// NVFP4 scales in tiles of 128 rows and 4 columns; FP8 blocks of 128 x 128 with one FP32 each.
TEST(Families, ScalesHaveTheLayoutOfTheirFormat) {
  Model model = *load_model("nvidia/GLM-5-NVFP4");
  auto named = on_one_rank(model, 64);  // 32 rows of gate and up, 32 columns of down per rank
  EXPECT_EQ(named["w13"].shape, (Shape{256, 64, 6144}));
  EXPECT_EQ(named["w13_scale"].shape, (Shape{256, 128, 384}));
  EXPECT_EQ(named["w2_scale"].shape, (Shape{256, 6144, 4}));
  EXPECT_EQ(named["w2_scale"].dtype, Dtype::kFp8E4m3);
  EXPECT_EQ(on_one_rank(model, 8)["shared_gate_up_scale"].shape, (Shape{512, 384}));
  named = on_one_rank(*load_model("deepseek-ai/DeepSeek-V3"), 8);
  EXPECT_EQ(named["o_proj"].dtype, Dtype::kFp8E4m3);
  EXPECT_EQ(named["o_proj_scale"].shape, (Shape{56, 16}));
  EXPECT_EQ(named["o_proj_scale"].dtype, Dtype::kF32);
  EXPECT_EQ(named["router"].dtype, Dtype::kBf16);
  EXPECT_EQ(named["w13"].bytes(), 256 * 512 * 7168LL);
}

TEST(Families, EveryProducersQuantisationIsRead) {
  const auto with = [](const std::string& quantization) {
    return from_config(
        R"({"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 128, "num_experts": 8, "moe_intermediate_size": 256,
        "intermediate_size": 1024, "quantization_config": )" +
        quantization + "}");
  };
  const auto dtype_of = [](const Model& model, const char* name) {
    return on_one_rank(model, 1)[name].dtype;
  };
  const Model int4 = with(
      R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
      "ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]})");
  EXPECT_EQ(int4.quant_algo, "INT4");
  EXPECT_EQ(dtype_of(int4, "w13"), Dtype::kI4);
  EXPECT_EQ(dtype_of(int4, "qkv"), Dtype::kBf16);
  EXPECT_EQ(on_one_rank(int4, 1)["w13_scale"].shape, (Shape{8, 512, 16}));
  const Model fp8 = with(
      R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}})");
  EXPECT_EQ(dtype_of(fp8, "w2"), Dtype::kFp8E4m3);
  EXPECT_EQ(dtype_of(with(R"({"quant_method": "awq", "bits": 4, "group_size": 128})"), "qkv"),
            Dtype::kI4);
  const Model mixed = with(
      R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}},
      "b": {"weights": {"num_bits": 4, "type": "float"}}}})");
  EXPECT_EQ(dtype_of(mixed, "w2"), Dtype::kUnknown);
}

TEST(Families, ExpertParallelRanksOfMiniMaxHoldWholeExperts) {
  auto named = on_one_rank(*load_model("MiniMaxAI/MiniMax-M2.5"), 8, 8);
  EXPECT_EQ(named["w13"].shape, (Shape{32, 2 * 1536, 3072}));
  EXPECT_EQ(named["w13"].dtype, Dtype::kFp8E4m3);
  EXPECT_EQ(named["qkv"].shape, (Shape{(6 + 2) * 128, 3072}));
  EXPECT_EQ(named.count("gate_up"), 0u);
}

TEST(Tables, OwnRowsComeOnTopAndWrongOnesNameTheirLine) {
  ASSERT_TRUE(
      add_model_table(
          "model,hidden_size,num_hidden_layers,num_attention_heads,intermediate_size,vocab_size\n"
          "me/Own,1024,4,8,4096,32000\n",
          "own.csv")
          .ok());
  EXPECT_EQ(load_model("me/own")->table, "own.csv");
  EXPECT_EQ(load_model("Own")->layers, 4);
  const Status wrong = add_model_table(
      "model,hidden_size,num_hidden_layers,num_attention_heads\n\nme/X,10,two,1\n", "own.csv");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().where, "own.csv:3");
  EXPECT_FALSE(load_model("me/X").ok());
}

}  // namespace
}  // namespace culprit::known
