// Checkpoints written and read back: every family, scheme and container holds the model that
// random_weights() makes of the same seed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lab/files/checkpoint.h"
#include "lab/files/make_model.h"
#include "lab/model/slots.h"
#include "lab_containers.h"

namespace culprit::lab {
namespace {

using test::TempFolder;

ModelConfig micro(std::string_view name) {
  ModelConfig config = *preset(name);
  if (config.router.experts > 0) config = *resized(config, {.layers = 2, .experts = 8});
  config.layers = 2;
  config.intermediate = 256;
  config.vocab = 300;
  return config;
}

MakeModel order(const RandomModel& model, ContainerKind container, const std::string& path) {
  MakeModel result;
  result.model = model;
  result.container = container;
  result.path = path;
  return result;
}

Checkpoint written(const MakeModel& made) {
  const auto bytes = make_model(made);
  EXPECT_TRUE(bytes.ok()) << (bytes.ok() ? "" : bytes.error().what);
  auto opened = open_checkpoint(made.path);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? ""
                                           : opened.error().what + " at " + opened.error().where);
  return opened.ok() ? std::move(*opened) : Checkpoint{};
}

std::vector<Slot> slots_of(Weights& weights, Naming naming) {
  std::vector<Slot> slots = outer_slots(weights, naming);
  for (std::int64_t layer = 0; layer < std::ssize(weights.layers); ++layer)
    for (Slot& slot : layer_slots(weights, layer, naming)) slots.push_back(std::move(slot));
  return slots;
}

std::vector<float> rows_of(const Matrix& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows * matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    dequantize_row(matrix, r, values.data() + r * matrix.cols);
  return values;
}

void expect_same(const Matrix& got, const Matrix& expected, const std::string& name) {
  ASSERT_EQ(got.format, expected.format) << name;
  ASSERT_EQ(got.rows, expected.rows) << name;
  ASSERT_EQ(got.cols, expected.cols) << name;
  EXPECT_EQ(got.scale, expected.scale) << name;
  EXPECT_EQ(got.input_scale, expected.input_scale) << name;
  EXPECT_EQ(got.scale_block, expected.scale_block) << name;
  EXPECT_EQ(
      std::memcmp(got.data, expected.data, static_cast<std::size_t>(got.rows * got.row_bytes())), 0)
      << name;
  EXPECT_EQ(rows_of(got), rows_of(expected)) << name;  // block scales and all
}

void expect_safetensors(const RandomModel& model, std::int64_t shard_bytes) {
  const TempFolder folder;
  auto memory = random_weights(model);
  MakeModel made = order(model, ContainerKind::kSafetensors, folder.at("model"));
  made.shard_bytes = shard_bytes;
  Checkpoint checkpoint = written(made);
  EXPECT_EQ(config_to_json(checkpoint.weights.config), config_to_json(model.config));
  const auto got = slots_of(checkpoint.weights, Naming::kHf);
  const auto expected = slots_of(memory->weights, Naming::kHf);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].vector != nullptr)
      EXPECT_EQ(*got[i].vector, *expected[i].vector) << got[i].name;
    else
      expect_same(*got[i].matrix, *expected[i].matrix, got[i].name);
  }
}

TEST(MakeModel, SafetensorsOfEveryFamily) {
  for (const std::string& name : preset_names())
    if (name.starts_with("tiny-")) expect_safetensors({micro(name), Scheme::kNvfp4, 3}, 1 << 30);
}

TEST(MakeModel, SafetensorsOfEveryScheme) {
  for (const Scheme scheme : {Scheme::kF32, Scheme::kBf16, Scheme::kFp8})
    expect_safetensors({micro("tiny-glm-5"), scheme, 4}, 1 << 30);
}

TEST(MakeModel, SafetensorsInShards) {
  expect_safetensors({micro("tiny-glm-5"), Scheme::kNvfp4, 5}, 300'000);
  expect_safetensors({micro("tiny-glm-5"), Scheme::kFp8, 5}, 1);
}

TEST(MakeModel, SaysHowItIsQuantised) {
  const TempFolder folder;
  written(
      order({micro("tiny-glm-5"), Scheme::kNvfp4, 1}, ContainerKind::kSafetensors, folder.at("a")));
  const auto nvfp4 =
      nlohmann::json::parse(test::read_all(folder.at("a/hf_quant_config.json")))["quantization"];
  EXPECT_EQ(nvfp4["quant_algo"], "NVFP4");
  EXPECT_EQ(nvfp4["group_size"], 16);
  EXPECT_EQ(nvfp4["exclude_modules"],
            nlohmann::json({"lm_head", "model.layers.0.self_attn*", "model.layers.1.self_attn*",
                            "model.layers.1.mlp.gate"}));
  written(
      order({micro("tiny-glm-5"), Scheme::kFp8, 1}, ContainerKind::kSafetensors, folder.at("b")));
  const auto fp8 =
      nlohmann::json::parse(test::read_all(folder.at("b/config.json")))["quantization_config"];
  EXPECT_EQ(fp8["quant_method"], "fp8");
  EXPECT_EQ(fp8["weight_block_size"], nlohmann::json({128, 128}));
}

// The rows of a GGUF slot, put back into the order of safetensors.
std::vector<float> in_hf_order(const Slot& slot, const ModelConfig& c, const MlaWeights* mla) {
  if (slot.role == Role::kKeyB) {  // with v_b: all of kv_b
    const std::vector<float> keys = rows_of(mla->k_b), values = rows_of(mla->v_b);
    std::vector<float> whole;
    for (std::int64_t head = 0; head < c.heads; ++head) {
      for (std::int64_t p = 0; p < c.nope_dim; ++p)
        for (std::int64_t l = 0; l < c.kv_lora_rank; ++l)
          whole.push_back(
              keys[static_cast<std::size_t>((head * c.kv_lora_rank + l) * c.nope_dim + p)]);
      const auto first = values.begin() + head * c.v_dim * c.kv_lora_rank;
      whole.insert(whole.end(), first, first + c.v_dim * c.kv_lora_rank);
    }
    return whole;
  }
  const std::vector<float> rows = rows_of(*slot.matrix);
  if (!slot.turned || c.rope != RopeStyle::kInterleaved) return rows;
  std::vector<float> result(rows.size());
  for (std::int64_t r = 0; r < slot.rows; ++r) {
    const std::int64_t lane = r % c.head_dim, half = lane % 2, pair = lane / 2;
    const std::int64_t to = r / c.head_dim * c.head_dim + half * (c.head_dim / 2) + pair;
    std::copy_n(rows.begin() + r * slot.cols, slot.cols, result.begin() + to * slot.cols);
  }
  return result;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / size);
}

// largest: of the errors of any matrix, relative to its size.
void expect_gguf(const RandomModel& model, const RandomModel& reference, double largest) {
  const TempFolder folder;
  auto memory = random_weights(reference);
  Checkpoint checkpoint = written(order(model, ContainerKind::kGguf, folder.at("model.gguf")));
  const ModelConfig& c = checkpoint.weights.config;
  const auto expected = slots_of(memory->weights, Naming::kHf);
  for (const Slot& slot : slots_of(checkpoint.weights, Naming::kGguf)) {
    const auto same = std::find_if(expected.begin(), expected.end(), [&](const Slot& other) {
      return other.canonical == slot.canonical;
    });
    ASSERT_NE(same, expected.end()) << slot.canonical;
    if (slot.vector != nullptr) {
      EXPECT_EQ(*slot.vector, *same->vector) << slot.name;
      continue;
    }
    if (slot.role == Role::kValueB) continue;
    const std::size_t layer = slot.canonical.find("layers.1.") == std::string::npos ? 0 : 1;
    const auto got = in_hf_order(slot, c, &checkpoint.weights.layers[layer].mla);
    const auto rows = rows_of(*same->matrix);
    ASSERT_EQ(got.size(), rows.size()) << slot.name;
    EXPECT_LE(relative_error(got, rows), largest) << slot.name;
    EXPECT_EQ(slot.matrix->format, format_of(model.scheme, slot, Naming::kGguf)) << slot.name;
  }
}

TEST(MakeModel, GgufOfEveryFamily) {
  for (const std::string& name : preset_names()) {
    if (!name.starts_with("tiny-")) continue;
    const RandomModel model{micro(name), Scheme::kBf16, 3};
    expect_gguf(model, model, 0);
  }
}

TEST(MakeModel, GgufOfEveryScheme) {
  const ModelConfig config = micro("tiny-glm-5");
  const RandomModel exact{config, Scheme::kF32, 6};
  expect_gguf(exact, exact, 0);
  expect_gguf({config, Scheme::kQ8_0, 6}, exact, 0.02);
  expect_gguf({config, Scheme::kQ6_K, 6}, exact, 0.03);
  expect_gguf({config, Scheme::kQ4_K, 6}, exact, 0.12);
  expect_gguf({config, Scheme::kMxfp4, 6}, exact, 0.15);
  // The same codes as ModelOpt's, in ggml's order.
  expect_gguf({config, Scheme::kNvfp4, 6}, {config, Scheme::kNvfp4, 6}, 1e-7);
}

TEST(MakeModel, GgufStatesTheConfig) {
  for (const std::string& name : preset_names()) {
    if (!name.starts_with("tiny-")) continue;
    const TempFolder folder;
    const RandomModel model{micro(name), Scheme::kF32, 1};
    const Checkpoint checkpoint =
        written(order(model, ContainerKind::kGguf, folder.at("model.gguf")));
    ModelConfig got = checkpoint.weights.config;
    EXPECT_EQ(got.rope, model.config.architecture == "LlamaForCausalLM" ? RopeStyle::kInterleaved
                                                                        : model.config.rope);
    got.rope = model.config.rope;
    // What a GGUF holds as floats, and what does not matter to the family.
    EXPECT_FLOAT_EQ(static_cast<float>(got.rms_eps), static_cast<float>(model.config.rms_eps));
    EXPECT_FLOAT_EQ(static_cast<float>(got.router.scale),
                    static_cast<float>(model.config.router.scale));
    got.rms_eps = model.config.rms_eps;
    got.router.scale = model.config.router.scale;
    EXPECT_EQ(config_to_json(got), config_to_json(model.config)) << name;
    EXPECT_EQ(got.qk_norm, model.config.qk_norm);
    EXPECT_NEAR(got.softmax_scale(), model.config.softmax_scale(), 1e-7);
  }
}

TEST(MakeModel, TiedEmbeddings) {
  for (const ContainerKind container : {ContainerKind::kSafetensors, ContainerKind::kGguf}) {
    const TempFolder folder;
    RandomModel model{micro("tiny-llama"), Scheme::kBf16, 1};
    model.config.tied_embeddings = true;
    const Checkpoint checkpoint = written(order(model, container, folder.at("model")));
    EXPECT_TRUE(checkpoint.weights.config.tied_embeddings);
    EXPECT_EQ(checkpoint.weights.lm_head.data, checkpoint.weights.embedding.data);
    EXPECT_EQ(checkpoint.container->find("lm_head.weight"), nullptr);
    EXPECT_EQ(checkpoint.container->find("output.weight"), nullptr);
    auto memory = random_weights(model);
    EXPECT_EQ(rows_of(memory->weights.lm_head), rows_of(checkpoint.weights.lm_head));
  }
}

TEST(MakeModel, SameBytesEveryTime) {
  const TempFolder folder;
  for (const char* name : {"a.gguf", "b.gguf"})
    written(
        order({micro("tiny-qwen3-moe"), Scheme::kQ4_K, 9}, ContainerKind::kGguf, folder.at(name)));
  EXPECT_TRUE(test::read_all(folder.at("a.gguf")) == test::read_all(folder.at("b.gguf")));
  EXPECT_GT(std::filesystem::file_size(folder.at("a.gguf")), 100'000U);
}

TEST(MakeModel, ReplacesOnlyWhenToldTo) {
  const TempFolder folder;
  const RandomModel model{micro("tiny-llama"), Scheme::kBf16, 1};
  for (const ContainerKind container : {ContainerKind::kSafetensors, ContainerKind::kGguf}) {
    MakeModel made =
        order(model, container, folder.at(container == ContainerKind::kGguf ? "m.gguf" : "m"));
    made.shard_bytes = 100'000;
    written(made);
    const auto again = make_model(made);
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().code, Error::Code::kUsage);
    made.overwrite = true;
    made.shard_bytes = 1 << 30;  // one file, where an index of many was
    written(made);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_NE(entry.path().extension(), ".partial");
}

TEST(MakeModel, WhatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const RandomModel model{micro("tiny-glm-5"), Scheme::kBf16, 1};
  const auto refused = [&](const RandomModel& each, ContainerKind container,
                           const std::string& path) {
    const auto made = make_model(order(each, container, path));
    EXPECT_FALSE(made.ok());
    EXPECT_FALSE(made.ok() || made.error().hint.empty());
    EXPECT_FALSE(made.ok() || made.error().what.empty());
  };
  RandomModel other = model;
  other.scheme = Scheme::kQ8_0;
  refused(other, ContainerKind::kSafetensors, folder.at("a"));
  other.scheme = Scheme::kFp8;
  refused(other, ContainerKind::kGguf, folder.at("a"));
  other = model;
  other.config.architecture = "Nobody";
  refused(other, ContainerKind::kGguf, folder.at("a"));
  other = model;
  other.config.hidden = 0;
  refused(other, ContainerKind::kGguf, folder.at("a"));
  other = {micro("tiny-qwen3-moe"), Scheme::kBf16, 1};
  other.config.router.normalized = false;
  refused(other, ContainerKind::kGguf, folder.at("a"));
  other = {micro("tiny-deepseek-v3"), Scheme::kBf16, 1};
  other.config.yarn->mscale = 0.5;
  refused(other, ContainerKind::kGguf, folder.at("a"));
  refused(model, ContainerKind::kGguf, folder.at("no/such/folder.gguf"));
  refused(model, ContainerKind::kSafetensors, folder.at("no/such/folder"));
  folder.write("file", "");
  refused(model, ContainerKind::kSafetensors, folder.at("file"));
  refused(model, ContainerKind::kGguf, "/dev/full");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()) ||
              std::filesystem::exists(folder.at("file")));
}

TEST(Resize, KeepsModelsSound) {
  for (const std::string& name : preset_names()) {
    for (const double scale : {0.01, 0.1, 0.25, 0.5, 2.0}) {
      const auto smaller = resized(*preset(name), {.scale = scale});
      EXPECT_TRUE(smaller.ok()) << name << " " << scale
                                << (smaller.ok() ? "" : smaller.error().what);
    }
    for (const std::int64_t layers : {1, 2, 4}) {
      const auto shorter = resized(*preset(name), {.layers = layers});
      ASSERT_TRUE(shorter.ok()) << name;
      EXPECT_EQ(shorter->layers, layers);
      EXPECT_EQ(shorter->is_moe(layers - 1), shorter->router.experts > 0);
    }
    if (preset(name)->router.experts == 0) {
      EXPECT_FALSE(resized(*preset(name), {.experts = 4}).ok());
      continue;
    }
    for (const std::int64_t experts : {1, 3, 8, 64}) {
      const auto fewer = resized(*preset(name), {.experts = experts});
      ASSERT_TRUE(fewer.ok()) << name << " " << experts << fewer.error().what;
      EXPECT_EQ(fewer->router.experts, experts);
    }
  }
  const auto slice = resized(*preset("glm-5"), {.layers = 6, .dense_layers = 3});
  EXPECT_TRUE(!slice->is_moe(2) && slice->is_moe(3));
  EXPECT_FALSE(resized(*preset("glm-5"), {.scale = 0}).ok());
  EXPECT_FALSE(resized(*preset("glm-5"), {.scale = -1}).ok());
  EXPECT_FALSE(resized(*preset("glm-5"), {.layers = 0}).ok());
  EXPECT_FALSE(resized(*preset("glm-5"), {.experts = 0}).ok());
  EXPECT_FALSE(resized(*preset("glm-5"), {.dense_layers = 79}).ok());
}

}  // namespace
}  // namespace culprit::lab
