// safetensors as others write them, and broken in every way that a length, an offset, a shape or a
// name can be: an error with place and reason, never more.
#include <gtest/gtest.h>

#include "lab/files/checkpoint.h"
#include "lab/files/make_model.h"
#include "lab/number/bf16.h"
#include "lab/number/fp4.h"
#include "lab_containers.h"

namespace culprit::lab {
namespace {

using nlohmann::ordered_json;
using test::raw;
using test::SafetensorsFile;
using test::TempFolder;

// A llama of one layer: hidden 16, two heads of 8, one KV head, 32 inside, 5 tokens.
constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 16,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32,
  "vocab_size": 5, "max_position_embeddings": 64})";

struct Shape {
  std::string name;
  std::int64_t rows, cols;
};
const std::vector<Shape> kMatrices{{"model.embed_tokens.weight", 5, 16},
                                   {"lm_head.weight", 5, 16},
                                   {"model.layers.0.self_attn.q_proj.weight", 16, 16},
                                   {"model.layers.0.self_attn.k_proj.weight", 8, 16},
                                   {"model.layers.0.self_attn.v_proj.weight", 8, 16},
                                   {"model.layers.0.self_attn.o_proj.weight", 16, 16},
                                   {"model.layers.0.mlp.gate_proj.weight", 32, 16},
                                   {"model.layers.0.mlp.up_proj.weight", 32, 16},
                                   {"model.layers.0.mlp.down_proj.weight", 16, 32}};
constexpr const char* kUp = "model.layers.0.mlp.up_proj.weight";

std::string zeros(std::int64_t count) { return std::string(static_cast<std::size_t>(count), '\0'); }

void add_norms(SafetensorsFile& file) {
  for (const char* norm : {"model.norm.weight", "model.layers.0.input_layernorm.weight",
                           "model.layers.0.post_attention_layernorm.weight"})
    file.add(norm, "BF16", {16}, zeros(32));
}

// All tensors in BF16, but those named in `instead`.
SafetensorsFile plain(const std::vector<std::string>& without = {}) {
  SafetensorsFile file;
  add_norms(file);
  for (const Shape& m : kMatrices)
    if (std::find(without.begin(), without.end(), m.name) == without.end())
      file.add(m.name, "BF16", {m.rows, m.cols}, zeros(m.rows * m.cols * 2));
  return file;
}

Result<Checkpoint> open(const TempFolder& folder, const std::string& bytes,
                        std::string_view config = kConfig) {
  folder.write("config.json", config);
  folder.write("model.safetensors", bytes);
  return open_checkpoint(folder.path());
}

void expect_error(const std::string& bytes, std::string_view what, std::string_view where,
                  Error::Code code = Error::Code::kBadInput) {
  const TempFolder folder;
  const auto opened = open(folder, bytes);
  ASSERT_FALSE(opened.ok()) << what;
  EXPECT_NE(opened.error().what.find(what), std::string::npos) << opened.error().what;
  EXPECT_NE(opened.error().where.find(where), std::string::npos) << opened.error().where;
  EXPECT_FALSE(opened.error().hint.empty());
  EXPECT_EQ(opened.error().code, code);
}

TEST(Safetensors, APlainOneOpens) {
  const TempFolder folder;
  const auto opened = open(folder, plain().bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_EQ(opened->weights.layers.size(), 1U);
  EXPECT_EQ(opened->weights.layers[0].gqa.k.rows, 8);
  EXPECT_EQ(opened->weights.norm.size(), 16U);
  const Stored* const up = opened->container->find(kUp);
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->dtype, "BF16");
  EXPECT_EQ(up->shape, (std::vector<std::int64_t>{32, 16}));
  EXPECT_TRUE(up->where.starts_with("model.safetensors: byte "));
  EXPECT_EQ(opened->container->find("nobody"), nullptr);
}

TEST(Safetensors, MetadataAndStrangersAreNobodysBusiness) {
  SafetensorsFile file = plain();
  file.header["__metadata__"] = {{"format", "pt"}, {"n", 5}, {"deep", {{"er", {1, {2, nullptr}}}}}};
  file.add("model.layers.1.eh_proj.weight", "BF16", {2, 2}, zeros(8));
  file.add("ids", "I64", {2}, zeros(16));
  file.add("new", "F4_WHAT", {3}, zeros(5));
  file.add("none", "F32", {0, 7}, "");
  const TempFolder folder;
  const auto opened = open(folder, file.bytes());
  EXPECT_TRUE(opened.ok()) << opened.error().what;
}

// ModelOpt's four tensors; the scalars at odd bytes.
SafetensorsFile with_nvfp4(float scale_2, float input_scale) {
  SafetensorsFile file = plain({kUp});
  std::vector<float> values(32 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 18;
  const Nvfp4 quantized = quantize_nvfp4(values, 32, 16);
  const std::string name = "model.layers.0.mlp.up_proj.";
  file.add(name + "weight", "U8", {32, 8}, {quantized.codes.begin(), quantized.codes.end()});
  file.add(name + "weight_scale", "F8_E4M3", {32, 1},
           {quantized.scales.begin(), quantized.scales.end()});
  file.add("odd", "U8", {1}, zeros(1));
  file.add(name + "weight_scale_2", "F32", {}, raw(scale_2));
  file.add(name + "input_scale", "F32", {1}, raw(input_scale));
  return file;
}

TEST(Safetensors, Nvfp4WithScalarsAtOddBytes) {
  const TempFolder folder;
  const auto opened = open(folder, with_nvfp4(0.25F, 0.5F).bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  const Matrix& up = opened->weights.layers[0].dense.up;
  EXPECT_EQ(up.format, Format::kNvfp4);
  EXPECT_EQ(up.scale, 0.25F);
  EXPECT_EQ(up.input_scale, 0.5F);
  std::vector<float> row(16);
  dequantize_row(up, 0, row.data());
  EXPECT_NE(row[0], 0);
}

TEST(Safetensors, Nvfp4WithoutCalibrationKeepsActivationsWide) {
  SafetensorsFile file = with_nvfp4(0.25F, 0.5F);
  file.header.erase("model.layers.0.mlp.up_proj.input_scale");
  const TempFolder folder;
  const auto opened = open(folder, file.bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_EQ(opened->weights.layers[0].dense.up.input_scale, 0);
}

TEST(Safetensors, Nvfp4InPieces) {
  const std::string name = "model.layers.0.mlp.up_proj.";
  for (const char* part : {"weight", "weight_scale", "weight_scale_2"}) {
    SafetensorsFile file = with_nvfp4(1, 1);
    file.header.erase(name + part);
    expect_error(file.bytes(), name + part, "/tmp/culprit-test-");
  }
  const std::pair<const char*, ordered_json> wrong[] = {
      {"weight_scale", {{"dtype", "U8"}, {"shape", {32, 1}}, {"data_offsets", {0, 32}}}},
      {"weight_scale", {{"dtype", "F8_E4M3"}, {"shape", {16, 2}}, {"data_offsets", {0, 32}}}},
      {"weight_scale_2", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 8}}}},
      {"weight_scale_2", {{"dtype", "I32"}, {"shape", {1}}, {"data_offsets", {0, 4}}}},
      {"weight", {{"dtype", "U8"}, {"shape", {32, 16}}, {"data_offsets", {0, 512}}}}};
  for (const auto& [part, entry] : wrong) {
    SafetensorsFile file = with_nvfp4(1, 1);
    SafetensorsFile moved;  // what is wrong lies first, so that it overlaps with nothing
    moved.data = zeros(512) + file.data;
    for (const auto& [key, value] : file.header.items()) {
      ordered_json shifted = value;
      for (auto& offset : shifted["data_offsets"]) offset = offset.get<int>() + 512;
      moved.header[key] = shifted;
    }
    moved.header[name + part] = entry;
    expect_error(moved.bytes(), name + part, "model.safetensors: byte ");
  }
  for (const float scale : {-1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    expect_error(with_nvfp4(scale, 1).bytes(), "weight_scale_2", "model.safetensors: byte ");
    expect_error(with_nvfp4(1, scale).bytes(), "input_scale", "model.safetensors: byte ");
  }
}

TEST(Safetensors, Fp8WithOneScaleOrBlocks) {
  for (const bool blocks : {true, false}) {
    SafetensorsFile file = plain({kUp});
    file.add(kUp, "F8_E4M3", {32, 16}, std::string(512, '\x38'));  // 1
    if (blocks)
      file.add(std::string(kUp) + "_scale_inv", "F32", {1, 1}, raw(0.5F));
    else
      file.add(std::string(kUp) + "_scale", "F32", {}, raw(0.5F));
    const TempFolder folder;
    const auto opened = open(folder, file.bytes());
    ASSERT_TRUE(opened.ok()) << opened.error().what;
    std::vector<float> row(16);
    dequantize_row(opened->weights.layers[0].dense.up, 31, row.data());
    EXPECT_EQ(row, std::vector<float>(16, 0.5F)) << blocks;
  }
  SafetensorsFile file = plain({kUp});
  file.add(kUp, "F8_E4M3", {32, 16}, zeros(512));
  expect_error(file.bytes(), "_scale_inv", "/tmp/culprit-test-");
  const std::string scales = std::string(kUp) + "_scale_inv";
  SafetensorsFile wide = file, other = file, odd = file;
  expect_error(wide.add(scales, "F32", {1, 2}, zeros(8)).bytes(), scales, "byte");
  expect_error(other.add(scales, "BF16", {1, 1}, zeros(2)).bytes(), scales, "byte");
  odd.add("one", "U8", {1}, zeros(1));
  expect_error(odd.add(scales, "F32", {1, 1}, zeros(4)).bytes(), "odd byte", "byte");
}

TEST(Safetensors, OtherPlainFormats) {
  SafetensorsFile file = plain({kUp, "lm_head.weight", "model.norm.weight"});
  file.header.erase("model.norm.weight");
  file.add(kUp, "F32", {32, 16}, zeros(2048));
  file.add("lm_head.weight", "F16", {5, 16}, zeros(160));
  file.add("model.norm.weight", "F16", {16}, std::string(32, '\x3c'));
  const TempFolder folder;
  const auto opened = open(folder, file.bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_EQ(opened->weights.layers[0].dense.up.format, Format::kF32);
  EXPECT_EQ(opened->weights.lm_head.format, Format::kF16);
  EXPECT_NEAR(opened->weights.norm[0], 1.0586, 1e-3);
  SafetensorsFile strange = plain({kUp});
  strange.add(kUp, "F8_E5M2", {32, 16}, zeros(512));
  expect_error(strange.bytes(), "F8_E5M2", "byte", Error::Code::kUnsupported);
  SafetensorsFile norm = plain();
  norm.header.erase("model.norm.weight");
  norm.add("model.norm.weight", "I32", {16}, zeros(64));
  expect_error(norm.bytes(), "I32", "byte");
}

TEST(Safetensors, MissingAndMisshapen) {
  expect_error(plain({kUp}).bytes(), kUp, "/tmp/culprit-test-");
  SafetensorsFile file = plain({kUp});
  file.add(kUp, "BF16", {16, 32}, zeros(1024));
  expect_error(file.bytes(), "is [16, 32]", "model.safetensors: byte ");
  SafetensorsFile flat = plain({kUp});
  flat.add(kUp, "BF16", {512}, zeros(1024));
  expect_error(flat.bytes(), "is [512]", "model.safetensors: byte ");
  SafetensorsFile norm = plain();
  norm.header.erase("model.norm.weight");
  norm.add("model.norm.weight", "BF16", {15}, zeros(30));
  expect_error(norm.bytes(), "model.norm.weight", "model.safetensors: byte ");
}

TEST(Safetensors, AMatrixAtAnOddByte) {
  // Behind a header of an odd length.
  SafetensorsFile file = plain();
  file.header["__metadata__"] = {{"k", ""}};
  if (file.header.dump().size() % 2 == 0) file.header["__metadata__"] = {{"k", "v"}};
  expect_error(file.bytes(false), "odd byte", "model.safetensors: byte ");
}

// The header with one entry changed.
std::string changed(const std::string& name, const std::string& field, const ordered_json& value) {
  SafetensorsFile file = plain();
  file.header[name][field] = value;
  return file.bytes();
}

TEST(Safetensors, EntriesThatDoNotFit) {
  const std::string name = kUp;
  const std::int64_t end = std::ssize(plain().data);
  expect_error(changed(name, "data_offsets", {0, end + 1}), name, "byte 8");
  expect_error(changed(name, "data_offsets", {20, 10}), name, "byte 8");
  expect_error(changed(name, "data_offsets", {0}), name, "byte 8");
  expect_error(changed(name, "data_offsets", {0, 1, 2}), name, "byte 8");
  expect_error(changed(name, "data_offsets", {0, 18446744073709551615U}), name, "byte 8");
  expect_error(changed(name, "data_offsets", {18446744073709551615U, 18446744073709551615U}), name,
               "byte 8");
  expect_error(changed(name, "shape", {32, 17}), name, "byte 8");
  expect_error(changed(name, "shape", {4294967296, 4294967296}), name, "byte 8");
  expect_error(changed(name, "shape", {18446744073709551615U, 2}), name, "byte 8");
  expect_error(changed(name, "shape", {1LL << 62, 1}), name, "byte 8");
  expect_error(changed(name, "dtype", "F32"), name, "byte 8");
  expect_error(changed(name, "dtype", ""), name, "byte 8");
  for (const ordered_json& bad : {ordered_json(nullptr), ordered_json(true), ordered_json(-1),
                                  ordered_json(1.5), ordered_json("x"), ordered_json::object()})
    for (const char* field : {"shape", "data_offsets"})
      expect_error(changed(name, field, bad), name, "byte 8");
  expect_error(changed(name, "shape", {32, {16}}), name, "byte 8");
  expect_error(changed(name, "dtype", {"BF16"}), name, "byte 8");
  expect_error(changed(name, "other", {1}), name, "byte 8");
}

TEST(Safetensors, SharedBytes) {
  SafetensorsFile file = plain();
  file.header["lm_head.weight"]["data_offsets"] =
      file.header["model.embed_tokens.weight"]["data_offsets"];
  expect_error(file.bytes(), "share bytes", "model.safetensors: byte ");
  SafetensorsFile one = plain();
  auto& offsets = one.header["lm_head.weight"]["data_offsets"];
  offsets = {offsets[0].get<int>() - 2, offsets[1].get<int>() - 2};
  expect_error(one.bytes(), "share bytes", "model.safetensors: byte ");
}

TEST(Safetensors, ATensorTwice) {
  const SafetensorsFile file = plain();
  std::string text = file.header.dump();
  const std::string entry = ordered_json(kUp).dump() + ":" + file.header[kUp].dump();
  text.insert(1, entry + ",");
  expect_error(raw(std::uint64_t{text.size()}) + text + file.data, "twice", "model.safetensors");
}

TEST(Safetensors, HeadersThatAreNone) {
  const auto header = [](std::string_view text) {
    return raw(std::uint64_t{text.size()}) + std::string(text);
  };
  expect_error("", "empty", "model.safetensors");
  expect_error("1234567", "ends within", "byte 0");
  expect_error(raw(std::uint64_t{9}) + "{}", "header", "byte 0");
  expect_error(raw(~std::uint64_t{0}) + "{}", "header", "byte 0");
  expect_error(raw(std::uint64_t{200'000'000}) + zeros(16), "header", "byte 0");
  expect_error(header(""), "JSON", "byte 8");
  expect_error(header("{\"a\": "), "JSON", "model.safetensors: byte 14");
  for (const char* text : {"[]", "5", "\"x\"", "null", "true", "-1", "1.5"})
    expect_error(header(text), "header is", "byte 8");
  expect_error(header("{\"a\": 5}"), "\"a\" has a number", "byte 8");
  expect_error(header("{\"a\": [{}]}"), "\"a\" has a list", "byte 8");
  expect_error(header("{\"a\": {\"b\": {}}}"), "\"a\" has an object", "byte 8");
  expect_error(header("{\"a\": {}}"), "data_offsets", "byte 8");
  expect_error(header("{\"__metadata__\": [{\"a\": [1]}, {\"x\": [2]}], \"b\": 5}"), "\"b\"",
               "byte 8");
  expect_error(header("{\"__metadata__\": 5, \"b\": 5}"), "\"b\"", "byte 8");
  expect_error(header("{}"), "missing", "/tmp/culprit-test-");
}

TEST(Safetensors, NamesInErrorsAreSafeToPrint) {
  SafetensorsFile file = plain();
  file.header["\x1b[31mred\n"] = 5;
  const TempFolder folder;
  const auto opened = open(folder, file.bytes());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().what.find('\x1b'), std::string::npos);
  EXPECT_EQ(opened.error().what.find('\n'), std::string::npos);
}

// Cut anywhere: never a crash, and never a checkpoint.
TEST(Safetensors, CutAnywhere) {
  const std::string whole = plain().bytes();
  const TempFolder folder;
  for (std::size_t length = 0; length < whole.size(); length += length < 2000 ? 7 : 97)
    EXPECT_FALSE(open(folder, whole.substr(0, length)).ok()) << length;
}

class Index : public testing::Test {
 protected:
  // Two shards, and an index of them.
  void write(const std::string& index) const {
    SafetensorsFile norms, matrices = plain();
    add_norms(norms);
    for (const auto& [name, entry] : norms.header.items()) matrices.header.erase(name);
    folder_.write("config.json", kConfig);
    folder_.write("a.safetensors", norms.bytes());
    folder_.write("b.safetensors", matrices.bytes());
    folder_.write("model.safetensors.index.json", index);
  }
  void expect_index_error(const std::string& index, std::string_view what,
                          std::string_view where) const {
    write(index);
    const auto opened = open_checkpoint(folder_.path());
    ASSERT_FALSE(opened.ok()) << index;
    EXPECT_NE(opened.error().what.find(what), std::string::npos) << opened.error().what;
    EXPECT_NE(opened.error().where.find(where), std::string::npos) << opened.error().where;
  }
  TempFolder folder_;
};

TEST_F(Index, NamesTheShards) {
  write(
      R"({"metadata": {}, "weight_map": {"x": "b.safetensors", "model.norm.weight": "a.safetensors"}})");
  const auto opened = open_checkpoint(folder_.path());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  EXPECT_TRUE(opened->container->find("model.norm.weight")->where.starts_with("a.safetensors"));
  EXPECT_TRUE(opened->container->find(kUp)->where.starts_with("b.safetensors"));
}

TEST_F(Index, Broken) {
  constexpr const char* kFile = "index.json";
  expect_index_error("{", "JSON", kFile);
  expect_index_error("[]", "weight_map", kFile);
  expect_index_error("{}", "weight_map", kFile);
  expect_index_error(R"({"weight_map": {}})", "weight_map", kFile);
  expect_index_error(R"({"weight_map": []})", "weight_map", kFile);
  expect_index_error(R"({"weight_map": {"x": 5}})", "\"x\"", kFile);
  expect_index_error(R"({"weight_map": {"x": ""}})", "\"x\"", kFile);
  expect_index_error(R"({"weight_map": {"x": "../../etc/passwd"}})", "\"x\"", kFile);
  expect_index_error(R"({"weight_map": {"x": ".."}})", "regular file", "..");
  expect_index_error(R"({"weight_map": {"x": "c.safetensors"}})", "cannot read", "c.safetensors");
  expect_index_error(R"({"weight_map": {"x": "a.safetensors"}})", "missing", "/tmp/culprit-test-");
}

TEST_F(Index, ATensorInTwoShards) {
  write(R"({"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})");
  folder_.write("a.safetensors", plain().bytes());
  const auto opened = open_checkpoint(folder_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().what.find("twice"), std::string::npos);
}

TEST(Checkpoint, PlacesWithoutOne) {
  const TempFolder folder;
  EXPECT_EQ(open_checkpoint(folder.at("nowhere")).error().code, Error::Code::kCannotRead);
  EXPECT_EQ(open_checkpoint(folder.path()).error().where, folder.at("config.json"));
  folder.write("config.json", kConfig);
  EXPECT_NE(open_checkpoint(folder.path()).error().where.find("model.safetensors"),
            std::string::npos);
  EXPECT_FALSE(open_checkpoint("/dev/null").ok());
}

}  // namespace
}  // namespace culprit::lab
