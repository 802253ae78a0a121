// GGUF as others write it, and broken in every way that a count, a length, a type or an offset can be.
#include <gtest/gtest.h>

#include "lab/files/checkpoint.h"
#include "lab/files/gguf.h"
#include "lab/files/make_model.h"
#include "lab_containers.h"

namespace culprit::lab {
namespace {

using test::GgufFile;
using test::raw;
using test::TempFolder;

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ5_K = 13, kBf16 = 30, kNvfp4 = 40;

std::string zeros(std::int64_t count) { return std::string(static_cast<std::size_t>(count), '\0'); }

// The keys of a llama of one layer: hidden 16, two heads of 8, one KV head, 32 inside, 5 tokens.
GgufFile keys() {
  GgufFile file;
  file.word("general.architecture", "llama")
      .number("llama.embedding_length", 16)
      .number("llama.block_count", 1)
      .number("llama.context_length", 64)
      .number("llama.attention.head_count", 2)
      .number("llama.attention.head_count_kv", 1)
      .number("llama.feed_forward_length", 32)
      .number("llama.vocab_size", 5)
      .real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return file;
}

struct Shape {
  std::string name;
  std::int64_t rows, cols;
};
const std::vector<Shape> kMatrices{
    {"token_embd.weight", 5, 16},      {"output.weight", 5, 16},
    {"blk.0.attn_q.weight", 16, 16},   {"blk.0.attn_k.weight", 8, 16},
    {"blk.0.attn_v.weight", 8, 16},    {"blk.0.attn_output.weight", 16, 16},
    {"blk.0.ffn_gate.weight", 32, 16}, {"blk.0.ffn_up.weight", 32, 16},
    {"blk.0.ffn_down.weight", 16, 32}};

// All tensors but one.
GgufFile& add_tensors(GgufFile& file, std::string_view without = "") {
  for (const char* norm : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"})
    if (norm != without) file.add(norm, {16}, kF32, zeros(64));
  for (const Shape& m : kMatrices)
    if (m.name != without) file.add(m.name, {m.cols, m.rows}, kBf16, zeros(m.rows * m.cols * 2));
  return file;
}
GgufFile plain(std::string_view without = "") {
  GgufFile file = keys();
  return add_tensors(file, without);
}

Result<Checkpoint> open(const std::string& bytes) {
  static const TempFolder folder;
  return open_checkpoint(folder.write("model.gguf", bytes));
}

void expect_error(const std::string& bytes, std::string_view what,
                  Error::Code code = Error::Code::kBadInput) {
  const auto opened = open(bytes);
  ASSERT_FALSE(opened.ok()) << what;
  EXPECT_NE(opened.error().what.find(what), std::string::npos) << opened.error().what;
  EXPECT_FALSE(opened.error().where.empty()) << opened.error().what;
  EXPECT_FALSE(opened.error().hint.empty());
  EXPECT_EQ(opened.error().code, code) << opened.error().what;
}

TEST(Gguf, APlainOneOpens) {
  const auto opened = open(plain().bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  const ModelConfig& config = opened->weights.config;
  EXPECT_EQ(config.rope, RopeStyle::kInterleaved);  // llama.cpp's order of the rows
  EXPECT_EQ(config.head_dim, 8);                    // stated by no key
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.vocab, 5);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(opened->weights.layers[0].gqa.k.rows, 8);
  EXPECT_EQ(opened->container->find("output.weight")->shape, (std::vector<std::int64_t>{5, 16}));
  EXPECT_NE(opened->container->find("output.weight")->where.find("byte"), std::string::npos);
}

TEST(Gguf, WithoutAHeadItIsTheEmbedding) {
  const auto opened = open(plain("output.weight").bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_TRUE(opened->weights.config.tied_embeddings);
  EXPECT_EQ(opened->weights.lm_head.data, opened->weights.embedding.data);
}

TEST(Gguf, KeysOfEveryType) {
  GgufFile file = plain();
  file.key("a", 0, raw(std::uint8_t{1})).key("b", 1, raw(std::int8_t{-1}));
  file.key("c", 2, raw(std::uint16_t{1})).key("d", 3, raw(std::int16_t{-1}));
  file.key("e", 5, raw(std::int32_t{-1})).key("f", 7, raw(std::uint8_t{1}));
  file.key("g", 10, raw(~std::uint64_t{0}))
      .key("h", 11, raw(std::int64_t{-1}))
      .key("i", 12, raw(1.0));
  file.key(
      "j", 9,
      raw(std::uint32_t{8}) + raw(std::uint64_t{2}) + GgufFile::text("x") + GgufFile::text(""));
  file.key("k", 9, raw(std::uint32_t{4}) + raw(std::uint64_t{3}) + zeros(12));
  file.key("", 8, GgufFile::text("nobody forbids it"));
  EXPECT_TRUE(open(file.bytes()).ok());
}

TEST(Gguf, VersionsAndMagic) {
  expect_error("", "empty");
  expect_error("GGU", "ends within");
  expect_error("GGML" + zeros(40), "no GGUF");
  GgufFile file = plain();
  file.version = 2;
  EXPECT_TRUE(open(file.bytes()).ok());
  file.version = 1;
  expect_error(file.bytes(), "version 1", Error::Code::kUnsupported);
  file.version = 0x03000000;
  expect_error(file.bytes(), "big-endian", Error::Code::kUnsupported);
}

TEST(Gguf, Alignment) {
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{8}, std::size_t{4096}}) {
    GgufFile file = keys();
    file.alignment = alignment;
    file.number("general.alignment", static_cast<std::uint32_t>(alignment));
    // With 1 the data may begin anywhere: whether its matrices are aligned is up to the header.
    std::string filler;
    GgufFile whole;
    do {
      whole = file;
      whole.word("filler", filler);
      add_tensors(whole);
      filler += 'x';
    } while ((24 + whole.keys.size() + whole.infos.size()) % 4 != 0);
    const auto opened = open(whole.bytes());
    EXPECT_TRUE(opened.ok()) << alignment << opened.error().what;
  }
  for (const std::uint32_t bad : {0U, 3U, 48U, 1U << 21})
    expect_error(plain().number("general.alignment", bad).bytes(), "general.alignment");
  expect_error(plain().word("general.alignment", "32").bytes(), "general.alignment");
}

TEST(Gguf, AMatrixAtAnOddByte) {
  GgufFile file = keys();
  file.alignment = 1;
  file.number("general.alignment", 1);
  add_tensors(file);
  if ((24 + file.keys.size() + file.infos.size()) % 2 == 0)
    file.word("filler", "x").word("fillers", "y");
  while ((24 + file.keys.size() + file.infos.size()) % 2 == 0)
    file.word("f" + std::to_string(file.key_count), "");
  expect_error(file.bytes(), "odd byte");
}

TEST(Gguf, TensorsThatDoNotFit) {
  const auto with = [](const std::vector<std::int64_t>& dims, std::uint32_t type,
                       std::uint64_t offset) {
    GgufFile file = plain();
    file.info("extra", dims, type, offset);
    return file.bytes();
  };
  const std::uint64_t end = plain().data.size();
  EXPECT_TRUE(open(with({8}, 99, end)).ok());  // of an unknown type, and looked at by nobody
  expect_error(with({8}, kF32, end), "extra");
  expect_error(with({8}, kF32, end + 32), "extra");
  expect_error(with({8}, kF32, 7), "multiple of 32");
  expect_error(with({8}, kF32, ~std::uint64_t{31}), "extra");
  expect_error(with({8}, kF32, 0), "share bytes");
  expect_error(with({}, kF32, 0), "0 extents");
  expect_error(with({1, 1, 1, 1, 1}, kF32, 0), "5 extents");
  expect_error(with({0}, kF32, 0), "below 1");
  expect_error(with({-8}, kF32, 0), "below 1");
  expect_error(with({1LL << 62}, kF32, 0), "extra");
  expect_error(with({1LL << 32, 1LL << 32}, kF32, 0), "extra");
  expect_error(with({1LL << 32, 1LL << 29}, kQ5_K, 0), "extra");
  expect_error(with({255}, kQ5_K, 0), "extra");
  GgufFile twice = plain();
  twice.add("output.weight", {8}, kF32, zeros(32));
  expect_error(twice.bytes(), "twice");
}

TEST(Gguf, CountsThatAreNone) {
  GgufFile file = plain();
  file.tensor_count += 1;
  expect_error(file.bytes(), "");
  file.tensor_count = ~std::uint64_t{0};
  expect_error(file.bytes(), "");
  GgufFile keys_file = plain();
  keys_file.key_count = ~std::uint64_t{0};
  expect_error(keys_file.bytes(), "");
  expect_error(plain().key("x", 13, "").bytes(), "type 13");
  expect_error(plain().key("x", 8, raw(~std::uint64_t{0})).bytes(), "ends within");
  expect_error(plain().key("x", 9, raw(std::uint32_t{4}) + raw(~std::uint64_t{0})).bytes(),
               "longer than");
  expect_error(plain().key("x", 9, raw(std::uint32_t{8}) + raw(~std::uint64_t{0})).bytes(),
               "ends within");
  expect_error(plain().key("x", 9, raw(std::uint32_t{9}) + raw(std::uint64_t{1})).bytes(),
               "type 9");
  expect_error(plain().key("x", 9, raw(std::uint32_t{77}) + raw(std::uint64_t{1})).bytes(),
               "type 77");
  expect_error(plain().number("llama.block_count", 1).bytes(), "twice");
}

TEST(Gguf, CutAnywhere) {
  const std::string whole = plain().bytes();
  for (std::size_t length = 0; length < whole.size(); length += length < 2500 ? 7 : 97)
    EXPECT_FALSE(open(whole.substr(0, length)).ok()) << length;
}

TEST(Gguf, MissingAndMisshapen) {
  expect_error(plain("blk.0.ffn_up.weight").bytes(), "blk.0.ffn_up.weight");
  GgufFile file = plain("blk.0.ffn_up.weight");
  file.add("blk.0.ffn_up.weight", {32, 16}, kBf16, zeros(1024));
  expect_error(file.bytes(), "is [16, 32]");
  GgufFile flat = plain("blk.0.ffn_up.weight");
  flat.add("blk.0.ffn_up.weight", {512}, kBf16, zeros(1024));
  expect_error(flat.bytes(), "is [512]");
  GgufFile norm = plain("output_norm.weight");
  norm.add("output_norm.weight", {17}, kF32, zeros(68));
  expect_error(norm.bytes(), "output_norm.weight");
  GgufFile strange = plain("blk.0.ffn_up.weight");
  strange.add("blk.0.ffn_up.weight", {16, 32}, 24, zeros(512));
  expect_error(strange.bytes(), "is I8", Error::Code::kUnsupported);
  GgufFile half = plain("blk.0.ffn_up.weight");
  half.add("blk.0.ffn_up.weight", {16, 32}, kF16, zeros(1024));
  EXPECT_TRUE(open(half.bytes()).ok());
}

// The keys of the plain llama with one of them changed, or left out (empty).
std::string with_key(std::string_view name, std::uint32_t type, const std::string& value) {
  GgufFile base = keys(), file;
  std::string_view rest = base.keys;
  while (!rest.empty()) {
    std::uint64_t length = 0;
    std::memcpy(&length, rest.data(), 8);
    const std::string_view key = rest.substr(8, length);
    std::uint32_t old = 0;
    std::memcpy(&old, rest.data() + 8 + length, 4);
    std::uint64_t bytes = 4;
    if (old == 8) std::memcpy(&bytes, rest.data() + 12 + length, 8), bytes += 8;
    if (key != name) file.key(key, old, std::string(rest.substr(12 + length, bytes)));
    rest.remove_prefix(12 + length + bytes);
  }
  if (!value.empty()) file.key(name, type, value);
  return add_tensors(file).bytes();
}
std::string number(std::uint32_t value) { return raw(value); }

TEST(Gguf, KeysThatAreWrong) {
  constexpr auto kUnsupported = Error::Code::kUnsupported;
  expect_error(with_key("general.architecture", 8, ""), "general.architecture");
  expect_error(with_key("general.architecture", 4, number(5)), "general.architecture");
  expect_error(with_key("general.architecture", 8, GgufFile::text("llamas")), "llamas",
               kUnsupported);
  for (const char* key :
       {"llama.embedding_length", "llama.block_count", "llama.context_length",
        "llama.attention.head_count", "llama.vocab_size", "llama.feed_forward_length"}) {
    expect_error(with_key(key, 4, ""), "", Error::Code::kBadInput);
    expect_error(with_key(key, 8, GgufFile::text("16")), key);
    expect_error(with_key(key, 5, raw(std::int32_t{-16})), key);
    expect_error(with_key(key, 10, raw(~std::uint64_t{0})), key);
  }
  expect_error(with_key("llama.attention.head_count_kv", 9,
                        raw(std::uint32_t{4}) + raw(std::uint64_t{1}) + number(1)),
               "layer to layer", kUnsupported);
  expect_error(with_key("llama.attention.layer_norm_rms_epsilon", 4, number(1)), "epsilon");
  expect_error(with_key("llama.attention.layer_norm_rms_epsilon", 6, raw(std::nanf(""))),
               "epsilon");
  expect_error(with_key("llama.rope.freq_base", 8, GgufFile::text("x")), "freq_base");
}

TEST(Gguf, WhatTheLabDoesNotCompute) {
  constexpr auto kUnsupported = Error::Code::kUnsupported;
  GgufFile linear = plain();
  linear.word("llama.rope.scaling.type", "linear").real("llama.rope.scaling.factor", 8);
  expect_error(linear.bytes(), "linear", kUnsupported);
  GgufFile freqs = plain();
  freqs.add("rope_freqs.weight", {4}, kF32, zeros(16));
  expect_error(freqs.bytes(), "rope_freqs", kUnsupported);
  expect_error(plain().number("llama.expert_count", 8).bytes(), "expert_count", kUnsupported);
  expect_error(plain().number("llama.rope.dimension_count", 4).bytes(), "dimension_count",
               kUnsupported);
  expect_error(plain().number("llama.attention.value_length", 4).bytes(), "value_length",
               kUnsupported);
  EXPECT_TRUE(open(plain().key("split.count", 2, raw(std::uint16_t{1})).bytes()).ok());
  expect_error(plain().key("split.count", 2, raw(std::uint16_t{3})).bytes(), "3 parts",
               kUnsupported);
  GgufFile bias = plain();
  bias.add("blk.0.attn_q.bias", {16}, kF32, zeros(64));
  expect_error(bias.bytes(), "attn_q.bias", kUnsupported);
  expect_error(plain()
                   .word("llama.rope.scaling.type", "yarn")
                   .key("llama.rope.scaling.factor", 7, raw('\1'))
                   .bytes(),
               "factor");
}

TEST(Gguf, Yarn) {
  GgufFile file = plain();
  file.word("llama.rope.scaling.type", "yarn").real("llama.rope.scaling.factor", 4);
  file.number("llama.rope.scaling.original_context_length", 32);
  const auto opened = open(file.bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  const Yarn& yarn = *opened->weights.config.yarn;
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_positions, 32);
  EXPECT_EQ(yarn.mscale, 1);
  EXPECT_EQ(yarn.mscale_all_dim, 0);
}

TEST(Gguf, TokensGiveTheVocabulary) {
  GgufFile file = plain();
  std::string tokens = raw(std::uint32_t{8}) + raw(std::uint64_t{6});
  for (int i = 0; i < 6; ++i) tokens += GgufFile::text("t");
  file.key("tokenizer.ggml.tokens", 9, tokens);
  expect_error(file.bytes(), "token_embd.weight");  // of five rows
  expect_error(plain().number("tokenizer.ggml.eos_token_id", 5).bytes(), "eos_token_id");
  const auto opened = open(plain().number("tokenizer.ggml.eos_token_id", 4).bytes());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->weights.config.eos, std::vector<std::int64_t>{4});
}

TEST(Gguf, ScalesBesideTensors) {
  GgufFile with = plain("blk.0.ffn_up.weight");
  with.add("blk.0.ffn_up.weight", {16, 32}, kBf16, std::string(1024, '\x3f'));
  with.add("blk.0.ffn_up.scale", {1}, kF32, raw(0.5F));
  const auto opened = open(with.bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_EQ(opened->weights.layers[0].dense.up.scale, 0.5F);
  GgufFile two = plain();
  two.add("blk.0.ffn_up.scale", {2}, kF32, zeros(8));
  expect_error(two.bytes(), "ffn_up.scale");
  GgufFile negative = plain();
  negative.add("blk.0.ffn_up.scale", {1}, kF32, raw(-1.0F));
  expect_error(negative.bytes(), "no scale");
  GgufFile words = plain();
  words.add("blk.0.ffn_up.scale", {1}, 26, zeros(4));
  expect_error(words.bytes(), "I32");
}

// A deepseek2 of one dense layer: hidden 32, two heads of 16 + 8, values of 12, a latent of 24. As
// today's files split kv_b and state its widths, or as files from before did; with a q_a or without.
GgufFile deepseek(bool split, bool query_latent) {
  GgufFile file;
  file.word("general.architecture", "deepseek2").number("deepseek2.embedding_length", 32);
  file.number("deepseek2.block_count", 2).number("deepseek2.nextn_predict_layers", 1);
  file.number("deepseek2.context_length", 64).number("deepseek2.attention.head_count", 2);
  file.number("deepseek2.feed_forward_length", 40).number("deepseek2.vocab_size", 5);
  file.number("deepseek2.attention.kv_lora_rank", 24).number("deepseek2.rope.dimension_count", 8);
  if (query_latent) file.number("deepseek2.attention.q_lora_rank", 20);
  file.number("deepseek2.attention.key_length", split ? 32 : 24);
  file.number("deepseek2.attention.value_length", split ? 24 : 12);
  if (split) file.number("deepseek2.attention.key_length_mla", 24);
  if (split) file.number("deepseek2.attention.value_length_mla", 12);
  const auto bf16 = [&](const std::string& name, std::vector<std::int64_t> dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    file.add(name, dims, kBf16, zeros(2 * count));
  };
  const auto f32 = [&](const std::string& name, std::int64_t count) {
    file.add(name, {count}, kF32, zeros(4 * count));
  };
  bf16("token_embd.weight", {32, 5});
  f32("output_norm.weight", 32);
  f32("blk.0.attn_norm.weight", 32);
  f32("blk.0.ffn_norm.weight", 32);
  f32("blk.0.attn_kv_a_norm.weight", 24);
  if (query_latent) {
    bf16("blk.0.attn_q_a.weight", {32, 20});
    f32("blk.0.attn_q_a_norm.weight", 20);
    bf16("blk.0.attn_q_b.weight", {20, 48});
  } else {
    bf16("blk.0.attn_q.weight", {32, 48});
  }
  bf16("blk.0.attn_kv_a_mqa.weight", {32, 32});
  if (split) {
    bf16("blk.0.attn_k_b.weight", {16, 24, 2});
    bf16("blk.0.attn_v_b.weight", {24, 12, 2});
  } else {
    bf16("blk.0.attn_kv_b.weight", {24, 56});
  }
  bf16("blk.0.attn_output.weight", {24, 32});
  bf16("blk.0.ffn_gate.weight", {32, 40});
  bf16("blk.0.ffn_up.weight", {32, 40});
  bf16("blk.0.ffn_down.weight", {40, 32});
  return file;
}

TEST(Gguf, Deepseek2OfEveryAge) {
  for (const bool split : {true, false})
    for (const bool query_latent : {true, false}) {
      const auto opened = open(deepseek(split, query_latent).bytes());
      ASSERT_TRUE(opened.ok()) << opened.error().what;
      const ModelConfig& config = opened->weights.config;
      EXPECT_EQ(config.layers, 1);  // the last block is for multi-token prediction
      EXPECT_EQ(config.nope_dim, 16);
      EXPECT_EQ(config.v_dim, 12);
      EXPECT_EQ(config.q_lora_rank, query_latent ? 20 : 0);
      const MlaWeights& mla = opened->weights.layers[0].mla;
      EXPECT_EQ(mla.kv_b.empty(), split);
      EXPECT_EQ(mla.k_b.empty(), !split);
      EXPECT_EQ(mla.v_b.empty(), !split);
      EXPECT_EQ(split ? mla.k_b.rows : mla.kv_b.rows, split ? 48 : 56);
      EXPECT_EQ(mla.q_a.empty(), !query_latent);
    }
  GgufFile file = deepseek(false, true);
  const std::string good = GgufFile::text("blk.0.attn_kv_b.weight") + raw(std::uint32_t{2}) +
                           raw(std::int64_t{24}) + raw(std::int64_t{56});
  const std::string bad = GgufFile::text("blk.0.attn_kv_b.weight") + raw(std::uint32_t{2}) +
                          raw(std::int64_t{56}) + raw(std::int64_t{24});
  file.infos.replace(file.infos.find(good), good.size(), bad);
  expect_error(file.bytes(), "attn_kv_b.weight");
}

TEST(Gguf, TypesHaveNamesAndSizes) {
  EXPECT_EQ(ggml_type(12)->name, "Q4_K");
  EXPECT_EQ(ggml_type(kNvfp4)->bytes, 36);
  EXPECT_EQ(ggml_type_named("MXFP4")->id, 39U);
  EXPECT_EQ(ggml_type(99), nullptr);
  EXPECT_EQ(ggml_type_named("Q9"), nullptr);
}

}  // namespace
}  // namespace culprit::lab
