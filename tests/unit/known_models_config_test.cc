// Config files as people have them: whole, nested, quantised, broken, hostile.
#include "known/models_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace culprit::known {
namespace {

// A folder of its own per test, removed after it.
class Configs : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / ("culprit-" + std::string(info->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  Result<Model> load(const std::string& config) { return load_model(write("config.json", config)); }

  std::filesystem::path folder_;
};

const std::string kGlm5 =
    R"({"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "hidden_size": 6144,
  "num_hidden_layers": 78, "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 64, "q_lora_rank": 2048,
  "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "intermediate_size": 12288,
  "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
  "first_k_dense_replace": 3, "index_n_heads": 32, "index_head_dim": 128, "vocab_size": 154880, "dtype": "bfloat16"})";

TEST_F(Configs, AConfigFileAndItsTableRowAgree) {
  const auto read = load(kGlm5);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->name, "GlmMoeDsaForCausalLM");
  const auto row = load_model("zai-org/GLM-5");
  const auto a = tensors(*read, {}), b = tensors(*row, {});
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].shape, b[i].shape) << a[i].name;
    EXPECT_EQ(a[i].per_rank, b[i].per_rank) << a[i].name;
    EXPECT_EQ(a[i].dtype, b[i].dtype) << a[i].name;
  }
}

TEST_F(Configs, ModelOptsFileBesideItIsReadToo) {
  write(
      "hf_quant_config.json",
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
    "group_size": 16, "exclude_modules": ["lm_head", "model.layers.0.self_attn*", "model.layers.39.self_attn.o_proj",
    "model.layers.39.self_attn.q_a_proj", "model.layers.78*"]}})");
  write("config.json", kGlm5);
  const auto model = load_model(folder_.string());  // the folder will do
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->quant_algo, "NVFP4");
  EXPECT_EQ(model->kv_dtype, Dtype::kFp8E4m3);
  std::map<std::string, Dtype> dtypes;
  for (const Tensor& tensor : tensors(*model, {})) dtypes[tensor.name] = tensor.dtype;
  for (const char* name : {"w13", "w2", "q_b"}) EXPECT_EQ(dtypes[name], Dtype::kFp4) << name;
  for (const char* name : {"o_proj", "q_a", "lm_head", "router"}) {
    EXPECT_EQ(dtypes[name], Dtype::kBf16) << name;
  }
}

TEST_F(Configs, QuantisationInsideTheConfigIsReadInEveryDialect) {
  const auto with = [](const std::string& quantization) {
    return R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "quantization_config": )" +
           quantization + "}";
  };
  const auto fp8 =
      load(with(R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})"));
  EXPECT_EQ(fp8->quant_algo, "FP8");
  EXPECT_FALSE(fp8->kv_dtype.has_value());
  const auto scheme = load(with(
      R"({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}, "ignore": ["re:.*lm_head"]})"));
  EXPECT_EQ(scheme->kv_dtype, Dtype::kFp8E4m3);
  EXPECT_TRUE(is_unquantized(*scheme, "lm_head"));
  const auto modelopt = load(
      with(R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": null})"));
  EXPECT_EQ(modelopt->quant_algo, "NVFP4");
  const auto mxfp4 = load(with(
      R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})"));
  EXPECT_TRUE(is_unquantized(*mxfp4, "model.layers.1.self_attn.q_proj"));
  EXPECT_FALSE(is_unquantized(*mxfp4, "model.layers.1.mlp.experts.0.gate_proj"));
  const auto unknown = load(with(R"({"kv_cache_quant_algo": "FP7"})"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().what.find("kv_cache_quant_algo"), std::string::npos);
}

TEST_F(Configs, MultimodalConfigsKeepTheLanguageModelInside) {
  const auto model = load(
      R"({"architectures": ["Llama4ForConditionalGeneration"], "torch_dtype": "bfloat16", "text_config": {"hidden_size": 5120,
    "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "num_local_experts": 128, "interleave_moe_layer_step": 2}})");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->hidden, 5120);
  EXPECT_EQ(model->architecture, "Llama4ForConditionalGeneration");
  EXPECT_EQ(model->moe_count(), 24);
  EXPECT_EQ(model->dense_count(), 24);
}

TEST_F(Configs, HybridsSayWhichLayersAttend) {
  const auto types = load(
      R"({"hidden_size": 64, "num_hidden_layers": 4, "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"]})");
  EXPECT_EQ(types->attention_count(), 1);
  const auto sliding = load(
      R"({"hidden_size": 64, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_EQ(sliding->attention_count(), 2);
  const auto every =
      load(R"({"hidden_size": 64, "num_hidden_layers": 8, "full_attention_interval": 4})");
  EXPECT_EQ(every->attention_count(), 2);
  const auto blocks = load(R"({"hidden_size": 64, "hybrid_override_pattern": "MEM*EM-"})");
  EXPECT_EQ(blocks->layers, 7);
  EXPECT_EQ(blocks->attention_count(), 1);
  EXPECT_EQ(blocks->moe_count(), 2);
  EXPECT_EQ(blocks->dense_count(), 1);
}

TEST_F(Configs, WrongTypesAndAbsurdSizesNameTheField) {
  const char* kBad[] = {
      R"({"hidden_size": "6144", "num_hidden_layers": 78})",
      R"({"hidden_size": -1, "num_hidden_layers": 78})",
      R"({"hidden_size": 1e300, "num_hidden_layers": 78})",
      R"({"hidden_size": 18446744073709551615, "num_hidden_layers": 78})",
      R"({"hidden_size": [6144], "num_hidden_layers": 78})",
      R"({"hidden_size": {"a": 1}, "num_hidden_layers": 78})",
      R"({"hidden_size": 6144.5, "num_hidden_layers": 78})",
      R"({"hidden_size": true, "num_hidden_layers": 78})",
  };
  for (const char* text : kBad) {
    const auto model = load(text);
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.error().code, Error::Code::kBadInput);
    EXPECT_NE(model.error().what.find("hidden_size"), std::string::npos) << text;
    EXPECT_NE(model.error().where.find("config.json"), std::string::npos);
    EXPECT_NE(model.error().hint, "");
  }
}

TEST_F(Configs, BrokenFilesSayWhere) {
  const auto cut = load(kGlm5.substr(0, 200));
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().where.find("byte 201"), std::string::npos) << cut.error().where;
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("null"), std::string("{}"),
        std::string("\xff\xfe{"), std::string(100'000, '['), std::string("{\"hidden_size\": 1}")}) {
    const auto model = load(text);
    ASSERT_FALSE(model.ok()) << text.substr(0, 20);
    EXPECT_EQ(model.error().code, Error::Code::kBadInput);
    EXPECT_NE(model.error().where, "");
  }
  EXPECT_FALSE(load_model((folder_ / "absent").string()).ok());
  std::filesystem::remove(folder_ / "config.json");
  const auto empty_folder = load_model(folder_.string());
  ASSERT_FALSE(empty_folder.ok());
  EXPECT_EQ(empty_folder.error().code, Error::Code::kCannotRead);
}

TEST_F(Configs, HugeSizesThatPassTheBoundsOverflowNothing) {
  const auto model = load(
      R"({"hidden_size": 1000000000, "num_hidden_layers": 1000000000, "num_attention_heads": 1000000000, "head_dim": 1000000000,
    "intermediate_size": 1000000000, "n_routed_experts": 1000000000, "moe_intermediate_size": 1000000000, "n_shared_experts": 1000000000,
    "kv_lora_rank": 1000000000, "q_lora_rank": 1000000000, "qk_nope_head_dim": 1000000000, "qk_rope_head_dim": 1000000000,
    "v_head_dim": 1000000000, "index_n_heads": 1000000000, "index_head_dim": 1000000000, "vocab_size": 1000000000})");
  ASSERT_TRUE(model.ok());
  Deployment deployment;
  deployment.pool_tokens = 1'000'000'000;
  for (const Tensor& tensor : tensors(*model, deployment))
    EXPECT_GT(tensor.elements, 0) << tensor.name;
}

TEST_F(Configs, GlobsCoverWhatTheyName) {
  Model model;
  model.unquantized = {"model.layers.7*", "*.mlp.gate", "language_model.model.layers.1.self_attn*"};
  EXPECT_TRUE(is_unquantized(model, "model.layers.78.mlp.up_proj"));
  EXPECT_TRUE(is_unquantized(model, "model.layers.3.mlp.gate"));
  EXPECT_FALSE(is_unquantized(model, "model.layers.3.mlp.gate_proj"));
  EXPECT_TRUE(is_unquantized(model, "model.layers.1.self_attn.o_proj"));
  EXPECT_FALSE(is_unquantized(model, "model.layers.11.self_attn.o_proj"));
}

using ServerInfo = Configs;

TEST_F(ServerInfo, SglangSaysItAtTheTopOrInItsState) {
  const auto flat = load_server_info(
      write("info.json",
            R"({"model_path": "nvidia/GLM-5-NVFP4", "tp_size": 8, "ep_size": 1, "page_size": 64,
    "kv_cache_dtype": "fp8_e4m3", "max_total_num_tokens": 495488, "internal_states": [{}], "version": "0.5"})"));
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(flat->tp, 8);
  EXPECT_EQ(flat->page_size, 64);
  EXPECT_EQ(flat->pool_tokens, 495'488);
  EXPECT_EQ(flat->kv_dtype, Dtype::kFp8E4m3);
  const auto nested = load_server_info(write(
      "info.json",
      R"({"server_args": {"tp_size": 4, "kv_cache_dtype": "auto", "dp_size": 4, "enable_dp_attention": true},
    "internal_states": [{"memory_usage": {"token_capacity": 1234}}]})"));
  ASSERT_TRUE(nested.ok());
  EXPECT_EQ(nested->tp, 4);
  EXPECT_EQ(nested->attention_dp, 4);
  EXPECT_EQ(nested->pool_tokens, 1234);
  EXPECT_FALSE(nested->kv_dtype.has_value());
}

TEST_F(ServerInfo, VllmSaysItAsObjectsOrAsText) {
  const auto objects = load_server_info(write(
      "info.json",
      R"({"vllm_config": {"parallel_config": {"tensor_parallel_size": 8, "enable_expert_parallel": true},
    "cache_config": {"block_size": 16, "num_gpu_blocks": 1000, "cache_dtype": "fp8"}}})"));
  ASSERT_TRUE(objects.ok());
  EXPECT_EQ(objects->tp, 8);
  EXPECT_EQ(objects->ep, 8);
  EXPECT_EQ(objects->pool_tokens, 16'000);
  EXPECT_EQ(objects->page_size, 0);
  EXPECT_EQ(objects->kv_dtype, Dtype::kFp8E4m3);
  const auto printed = load_server_info(write(
      "info.json",
      R"({"vllm_config": "model='Qwen/Qwen3-8B', tensor_parallel_size=2, kv_cache_dtype=auto, seed=0"})"));
  ASSERT_TRUE(printed.ok());
  EXPECT_EQ(printed->tp, 2);
}

TEST_F(ServerInfo, WhatIsNoServerInfoSaysSo) {
  for (const char* text : {"{}", "[]", "7", R"({"model": "x"})", R"({"tp_size": "eight"})",
                           R"({"kv_cache_dtype": "fp9"})", R"({"tp_size": -8})"}) {
    const auto info = load_server_info(write("info.json", text));
    ASSERT_FALSE(info.ok()) << text;
    EXPECT_EQ(info.error().code, Error::Code::kBadInput);
    EXPECT_NE(info.error().where.find("info.json"), std::string::npos);
    EXPECT_NE(info.error().hint, "");
  }
  EXPECT_EQ(load_server_info("/nowhere/info.json").error().code, Error::Code::kCannotRead);
}

}  // namespace
}  // namespace culprit::known
