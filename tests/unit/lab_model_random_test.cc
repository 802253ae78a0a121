// Random models: the fast way of encoding levels against quantising their values; the same values for
// every scheme, order and number of threads.
#include "lab/model/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

std::vector<float> rows_of(const Matrix& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows * matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    dequantize_row(matrix, r, values.data() + r * matrix.cols);
  return values;
}

TEST(Levels, AnyPartIsThePartOfTheWhole) {
  const LevelSource source(7, "a.weight");
  std::vector<Level> whole(1000);
  source.fill(0, whole);
  for (const std::int64_t first : {0, 1, 7, 8, 13, 500})
    for (const std::size_t count : {0U, 1U, 5U, 8U, 9U, 100U}) {
      std::vector<Level> part(count);
      source.fill(first, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first))
          << first << " " << count;
    }
  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(source.at(i), whole[static_cast<std::size_t>(i)]);
}

TEST(Levels, DependOnSeedAndName) {
  std::vector<Level> a(64), b(64), c(64);
  LevelSource(7, "a.weight").fill(0, a);
  LevelSource(8, "a.weight").fill(0, b);
  LevelSource(7, "b.weight").fill(0, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(Levels, AreNormalAndBf16) {
  const auto values = level_values(0.02);
  std::vector<Level> levels(200000);
  LevelSource(1, "x").fill(0, levels);
  double sum = 0, squares = 0, fourth = 0;
  std::array<int, 256> seen{};
  for (const Level level : levels) {
    const double v = static_cast<double>(values[level]);
    sum += v, squares += v * v, fourth += v * v * v * v;
    ++seen[level];
  }
  const double n = static_cast<double>(levels.size()), variance = squares / n;
  EXPECT_NEAR(sum / n, 0, 3 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(variance), 0.02, 0.0005);  // a little less: the tails end at 2.9 deviations
  EXPECT_NEAR(fourth / n / (variance * variance), 3, 0.25);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 1000);  // 781 expected, deviation 28
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 600);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(values[i], from_bf16(to_bf16(values[i])));
    EXPECT_EQ(values[i ^ 128U], -values[i]);
    EXPECT_NE(values[i], 0);
    EXPECT_TRUE(i % 128 == 0 || std::fabs(values[i]) >= std::fabs(values[i - 1]));
  }
}

// A matrix whose rows are those of a source, and its values one by one.
struct Sample {
  LevelMatrix levels;
  std::vector<float> values;
};
Sample sample(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const LevelSource source(seed, "sample");
  Sample result{
      {rows, cols, 0.03, 0,
       [=](std::int64_t row, std::span<Level> levels) { source.fill(row * cols, levels); }},
      {}};
  std::vector<Level> all(static_cast<std::size_t>(rows * cols));
  source.fill(0, all);
  result.levels.largest = largest_magnitude(all);
  const auto values = level_values(0.03);
  for (const Level level : all) result.values.push_back(values[level]);
  return result;
}

struct Encoded {
  std::vector<std::byte> data, scales;
};
Encoded encode(const LevelMatrix& matrix, Format format) {
  const EncodedSize size = encoded_size(format, matrix.rows, matrix.cols);
  Encoded result{std::vector<std::byte>(static_cast<std::size_t>(size.data)),
                 std::vector<std::byte>(static_cast<std::size_t>(size.scales))};
  Encoder encoder;
  encoder.encode(matrix, format, 0, matrix.rows, result.data.data(), result.scales.data());
  return result;
}

template <class Value>
void expect_bytes(const std::vector<std::byte>& got, const std::vector<Value>& expected) {
  ASSERT_EQ(got.size(), expected.size() * sizeof(Value));
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0);
}

TEST(Encode, Nvfp4IsTheQuantiserCodeForCode) {
  for (const std::int64_t cols : {16, 48, 512}) {
    const Sample s = sample(9, cols, static_cast<std::uint64_t>(cols));
    const Nvfp4 expected = quantize_nvfp4(s.values, 9, cols);
    const Encoded got = encode(s.levels, Format::kNvfp4);
    expect_bytes(got.data, expected.codes);
    expect_bytes(got.scales, expected.scales);
    EXPECT_EQ(Encoder::scale_of(s.levels, Format::kNvfp4), expected.scale_2);
  }
}

TEST(Encode, GgmlNvfp4HoldsTheSameValues) {
  const Sample s = sample(5, 128, 3);
  const Encoded got = encode(s.levels, Format::kGgmlNvfp4);
  Matrix matrix;
  matrix.format = Format::kGgmlNvfp4;
  matrix.rows = 5, matrix.cols = 128;
  matrix.data = got.data.data();
  matrix.scale = Encoder::scale_of(s.levels, Format::kGgmlNvfp4);
  EXPECT_EQ(rows_of(matrix), dequantize(quantize_nvfp4(s.values, 5, 128)));
}

TEST(Encode, PlainFormats) {
  const Sample s = sample(3, 24, 4);
  expect_bytes(encode(s.levels, Format::kF32).data, s.values);
  std::vector<std::uint16_t> halves, bf16;
  for (const float v : s.values) {
    halves.push_back(to_half(v));
    bf16.push_back(to_bf16(v).bits);
  }
  expect_bytes(encode(s.levels, Format::kF16).data, halves);
  expect_bytes(encode(s.levels, Format::kBf16).data, bf16);
}

TEST(Encode, Fp8InBlocks) {
  constexpr std::int64_t kRows = 300, kCols = 200;
  const Sample s = sample(kRows, kCols, 5);
  std::vector<std::uint8_t> codes(s.values.size());
  std::vector<float> scales(3 * 2);
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    float& scale = scales[i / kCols / 128 * 2 + i % kCols / 128];
    scale = std::max(scale, std::fabs(s.values[i]) / 448);
  }
  for (std::size_t i = 0; i < s.values.size(); ++i)
    codes[i] = to_e4m3(s.values[i] / scales[i / kCols / 128 * 2 + i % kCols / 128]);
  const Encoded got = encode(s.levels, Format::kE4m3);
  expect_bytes(got.data, codes);
  expect_bytes(got.scales, scales);
}

template <class Block>
void expect_blocks(Format format) {
  const Sample s = sample(3, 512, 6);
  std::vector<Block> expected(s.values.size() / static_cast<std::size_t>(Block::kValues));
  quantize(s.values, expected.data());
  expect_bytes(encode(s.levels, format).data, expected);
}

TEST(Encode, GgmlBlocks) {
  expect_blocks<BlockQ8_0>(Format::kQ8_0);
  expect_blocks<BlockQ4_K>(Format::kQ4_K);
  expect_blocks<BlockQ6_K>(Format::kQ6_K);
  expect_blocks<BlockMxfp4>(Format::kGgmlMxfp4);
}

TEST(Encode, InPiecesAsInOne) {
  const Sample s = sample(300, 64, 8);
  for (const Format format : {Format::kBf16, Format::kNvfp4, Format::kE4m3, Format::kQ8_0}) {
    const Encoded whole = encode(s.levels, format);
    Encoded pieces{std::vector<std::byte>(whole.data.size()),
                   std::vector<std::byte>(whole.scales.size())};
    Encoder encoder;
    std::int64_t data = 0, scales = 0;
    for (std::int64_t first = 0; first < 300; first += 128) {
      const std::int64_t count = std::min<std::int64_t>(128, 300 - first);
      encoder.encode(s.levels, format, first, count, pieces.data.data() + data,
                     pieces.scales.data() + scales);
      data += encoded_size(format, count, 64).data;
      scales += encoded_size(format, count, 64).scales;
    }
    EXPECT_EQ(pieces.data, whole.data) << format_name(format);
    EXPECT_EQ(pieces.scales, whole.scales) << format_name(format);
  }
}

// The slots of a model's weights by canonical name.
std::vector<Slot> slots_of(Weights& weights, Naming naming) {
  std::vector<Slot> slots = outer_slots(weights, naming);
  for (std::int64_t layer = 0; layer < weights.config.layers; ++layer)
    for (Slot& slot : layer_slots(weights, layer, naming)) slots.push_back(std::move(slot));
  return slots;
}

// The preset of two layers, one of them with four experts if it has any.
RandomModel tiny(std::string_view name, Scheme scheme, std::uint64_t seed = 5) {
  ModelConfig config = *preset(name);
  config.layers = 2;
  if (config.router.experts > 0) config = *resized(config, {.experts = 4});
  return {config, scheme, seed};
}

TEST(RandomWeights, HaveTheirShapes) {
  for (const std::string& name : preset_names()) {
    if (!name.starts_with("tiny-")) continue;
    auto made = random_weights(tiny(name, Scheme::kBf16));
    ASSERT_TRUE(made.ok()) << made.error().what;
    for (const Slot& slot : slots_of(made->weights, Naming::kHf)) {
      if (slot.matrix == nullptr) {
        EXPECT_EQ(static_cast<std::int64_t>(slot.vector->size()), slot.rows) << slot.name;
        continue;
      }
      // layer_slots() gives the experts their places anew only if their number changes.
      EXPECT_EQ(slot.matrix->rows, slot.rows) << slot.name;
      EXPECT_EQ(slot.matrix->cols, slot.cols) << slot.name;
      EXPECT_FALSE(slot.matrix->empty()) << slot.name;
    }
  }
}

TEST(RandomWeights, SchemesHoldTheSameModel) {
  auto f32 = random_weights(tiny("tiny-glm-5", Scheme::kF32));
  std::map<std::string, std::vector<float>> values;
  for (const Slot& slot : slots_of(f32->weights, Naming::kHf))
    values[slot.name] = slot.matrix != nullptr ? rows_of(*slot.matrix) : *slot.vector;
  for (const std::string& name : scheme_names()) {
    auto made = random_weights(tiny("tiny-glm-5", *scheme_named(name)));
    for (const Slot& slot : slots_of(made->weights, Naming::kHf)) {
      const std::vector<float>& exact = values[slot.name];
      if (slot.matrix == nullptr) {
        EXPECT_EQ(*slot.vector, exact) << name << " " << slot.name;
        continue;
      }
      const std::vector<float> got = rows_of(*slot.matrix);
      double error = 0, size = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        error += std::pow(static_cast<double>(got[i] - exact[i]), 2);
        size += std::pow(static_cast<double>(exact[i]), 2);
      }
      const Format format = slot.matrix->format;
      const double relative = std::sqrt(error / size);
      const bool four_bits =
          format == Format::kNvfp4 || format == Format::kGgmlMxfp4 || format == Format::kQ4_K;
      const bool exactly = format == Format::kF32 || format == Format::kBf16;
      EXPECT_LE(relative, exactly ? 0 : four_bits ? 0.15 : 0.03) << name << " " << slot.name;
      EXPECT_EQ(format, format_of(*scheme_named(name), slot, Naming::kHf));
    }
  }
}

TEST(RandomWeights, SchemesKeepWhatTheyKeep) {
  const auto formats = [](Scheme scheme) {
    auto made = random_weights(tiny("tiny-glm-5", scheme));
    std::map<std::string, Format> result;
    for (const Slot& slot : slots_of(made->weights, Naming::kHf))
      if (slot.matrix != nullptr) result[slot.name] = slot.matrix->format;
    return result;
  };
  auto nvfp4 = formats(Scheme::kNvfp4);
  EXPECT_EQ(nvfp4["model.layers.0.mlp.gate_proj.weight"], Format::kNvfp4);
  EXPECT_EQ(nvfp4["model.layers.1.mlp.experts.3.down_proj.weight"], Format::kNvfp4);
  EXPECT_EQ(nvfp4["model.layers.1.mlp.shared_experts.up_proj.weight"], Format::kNvfp4);
  for (const char* kept :
       {"model.layers.1.self_attn.o_proj.weight", "model.layers.1.mlp.gate.weight",
        "model.layers.1.self_attn.indexer.wk.weight", "lm_head.weight", "model.embed_tokens.weight",
        "model.layers.0.self_attn.kv_b_proj.weight"})
    EXPECT_EQ(nvfp4[kept], Format::kBf16) << kept;
  auto fp8 = formats(Scheme::kFp8);
  EXPECT_EQ(fp8["model.layers.1.self_attn.q_a_proj.weight"], Format::kE4m3);
  EXPECT_EQ(fp8["model.layers.1.mlp.gate.weight"], Format::kBf16);
  EXPECT_EQ(fp8["lm_head.weight"], Format::kBf16);
}

TEST(RandomWeights, Nvfp4HasScales) {
  auto made = random_weights(tiny("tiny-glm-5", Scheme::kNvfp4));
  const Mlp& mlp = made->weights.layers[0].dense;
  EXPECT_GT(mlp.gate.scale, 0);
  EXPECT_GT(mlp.gate.input_scale, 0);
  EXPECT_EQ(mlp.gate.input_scale, mlp.up.input_scale);
  EXPECT_GT(mlp.down.input_scale, mlp.up.input_scale);
}

TEST(RandomWeights, ThreadsMakeNoDifference) {
  auto one = random_weights(tiny("tiny-deepseek-v3", Scheme::kNvfp4), {}, 1);
  auto three = random_weights(tiny("tiny-deepseek-v3", Scheme::kNvfp4), {}, 3);
  const auto bytes = static_cast<std::size_t>(one->block.get_deleter().bytes);
  ASSERT_EQ(bytes, static_cast<std::size_t>(three->block.get_deleter().bytes));
  EXPECT_EQ(std::memcmp(one->block.get(), three->block.get(), bytes), 0);
  auto other = random_weights(tiny("tiny-deepseek-v3", Scheme::kNvfp4, 6), {}, 1);
  EXPECT_NE(std::memcmp(one->block.get(), other->block.get(), bytes), 0);
}

TEST(RandomWeights, WhatCannotBeMadeIsAnError) {
  const RandomModel model = tiny("tiny-glm-5", Scheme::kBf16);
  RandomModel broken = model;
  broken.config.hidden = 0;
  EXPECT_FALSE(random_weights(broken).ok());
  RandomModel huge = model;  // 2^58 bytes: refused by the kernel, not by the allocator's mercy
  huge.config.hidden = 1 << 20, huge.config.intermediate = 1 << 22, huge.config.vocab = 1 << 24;
  EXPECT_FALSE(random_weights(huge).ok());
}

// GGUF's order of rows: k_b, v_b and llama's pairs, against the rows of safetensors.
TEST(Slots, GgufRowsAreThoseOfHf) {
  for (const char* name : {"tiny-deepseek-v3", "tiny-llama", "tiny-qwen3-moe"}) {
    const RandomModel model = tiny(name, Scheme::kF32);
    const ModelConfig& c = model.config;
    auto made = random_weights(model);
    Weights places;
    places.config = c;
    places.layers.resize(static_cast<std::size_t>(c.layers));
    for (const Slot& slot : layer_slots(places, 1, Naming::kGguf)) {
      if (slot.matrix == nullptr) continue;
      const LevelMatrix levels = levels_of(model, slot, whole_of(slot));
      const Encoded encoded = encode(levels, Format::kF32);
      std::vector<float> got(encoded.data.size() / sizeof(float));
      std::memcpy(got.data(), encoded.data.data(), encoded.data.size());
      std::vector<float> hf;
      for (const Slot& other : layer_slots(made->weights, 1, Naming::kHf))
        if (other.canonical == slot.canonical) hf = rows_of(*other.matrix);
      ASSERT_FALSE(hf.empty()) << slot.canonical;
      const bool pairs = slot.turned && c.architecture == "LlamaForCausalLM";
      for (std::int64_t r = 0; r < slot.rows; ++r)
        for (std::int64_t col = 0; col < slot.cols; ++col) {
          std::int64_t row = r, from = col, cols = slot.cols;
          if (slot.role == Role::kKeyB) {  // [head, rank, nope] of [head, nope + v, rank]
            row = r / c.kv_lora_rank * (c.nope_dim + c.v_dim) + col;
            from = r % c.kv_lora_rank, cols = c.kv_lora_rank;
          } else if (slot.role == Role::kValueB) {
            row = r / c.v_dim * (c.nope_dim + c.v_dim) + c.nope_dim + r % c.v_dim;
          } else if (pairs) {  // reshape(heads, 2, d / 2).swap(1, 2)
            const std::int64_t head = r / c.head_dim, i = r % c.head_dim / 2, half = r % 2;
            row = head * c.head_dim + half * (c.head_dim / 2) + i;
          }
          ASSERT_EQ(got[static_cast<std::size_t>(r * slot.cols + col)],
                    hf[static_cast<std::size_t>(row * cols + from)])
              << name << " " << slot.name << " " << r << " " << col;
        }
    }
  }
}

TEST(Schemes, Names) {
  for (const std::string& name : scheme_names()) EXPECT_EQ(scheme_name(*scheme_named(name)), name);
  const auto unknown = scheme_named("nvfp");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("nvfp4"), std::string::npos);
}

}  // namespace
}  // namespace culprit::lab
