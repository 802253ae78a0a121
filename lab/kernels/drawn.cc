#include "lab/kernels/drawn.h"

#include <array>
#include <cstring>

#include "lab/number/bf16.h"
#include "lab/number/blocks.h"
#include "lab/number/fp4.h"
#include "lab/number/fp8.h"

namespace culprit::lab {
namespace {

constexpr std::array<DrawnKind, 12> kKinds{{{"bf16", Format::kBf16},
                                            {"f32", Format::kF32},
                                            {"f16", Format::kF16},
                                            {"e4m3", Format::kE4m3},
                                            {"e4m3, blocks", Format::kE4m3, true},
                                            {"nvfp4 w4a4", Format::kNvfp4, false, false, 16},
                                            {"nvfp4 w4a16", Format::kNvfp4, false, true, 16},
                                            {"q8_0", Format::kQ8_0, false, false, 32},
                                            {"q4_k", Format::kQ4_K, false, false, 256},
                                            {"q6_k", Format::kQ6_K, false, false, 256},
                                            {"mxfp4", Format::kGgmlMxfp4, false, false, 32},
                                            {"ggml-nvfp4", Format::kGgmlNvfp4, false, false, 64}}};

template <class Encode>
void encode_each(std::span<const float> values, std::byte* to, const Encode& encode) {
  for (const float value : values) {
    const auto code = encode(value);
    std::memcpy(to, &code, sizeof code);
    to += sizeof code;
  }
}

template <class Block>
void encode_blocks(std::span<const float> values, std::byte* to) {
  std::vector<Block> blocks(values.size() / std::size_t{Block::kValues});
  quantize(values, blocks.data());
  std::memcpy(to, blocks.data(), blocks.size() * sizeof(Block));
}

void encode(Format format, std::span<const float> values, std::byte* to) {
  switch (format) {
    case Format::kF32:
      return encode_each(values, to, [](float x) { return x; });
    case Format::kF16:
      return encode_each(values, to, [](float x) { return to_half(x); });
    case Format::kBf16:
      return encode_each(values, to, [](float x) { return to_bf16(x); });
    case Format::kE4m3:
      return encode_each(values, to, [](float x) { return to_e4m3(x); });
    case Format::kQ8_0:
      return encode_blocks<BlockQ8_0>(values, to);
    case Format::kQ4_K:
      return encode_blocks<BlockQ4_K>(values, to);
    case Format::kQ6_K:
      return encode_blocks<BlockQ6_K>(values, to);
    case Format::kGgmlMxfp4:
      return encode_blocks<BlockMxfp4>(values, to);
    case Format::kGgmlNvfp4:
      return encode_blocks<BlockNvfp4>(values, to);
    case Format::kNvfp4:
      return;  // codes and scales apart
  }
}

// Its second part: `bytes` one past where the first part's address would suit.
std::byte* add_scales(DrawnMatrix& drawn, const void* scales, std::size_t bytes,
                      std::int64_t offset) {
  drawn.parts.emplace_back(static_cast<std::int64_t>(bytes), offset + 1);
  std::memcpy(drawn.parts.back().data(), scales, bytes);
  return drawn.parts.back().data();
}

}  // namespace

std::span<const DrawnKind> drawn_kinds() { return kKinds; }

DrawnMatrix draw_matrix(const DrawnKind& kind, std::int64_t rows, std::int64_t cols,
                        std::int64_t offset, Draw& draw) {
  DrawnMatrix drawn{{kind.format, rows, cols}, {}};
  Matrix& m = drawn.matrix;
  const std::vector<float> values = draw.numbers(rows * cols);
  drawn.parts.emplace_back(rows * m.row_bytes(), offset);
  std::byte* const data = drawn.parts.back().data();
  m.data = data;
  m.scale = 0.75F;
  if (kind.format == Format::kNvfp4) {
    const Nvfp4 quantized = quantize_nvfp4(values, rows, cols);
    std::memcpy(data, quantized.codes.data(), quantized.codes.size());
    m.block_scales = add_scales(drawn, quantized.scales.data(), quantized.scales.size(), offset);
    m.scale = quantized.scale_2;
    m.input_scale = kind.wide ? 0 : 8.0F / (6 * 448);
    return drawn;
  }
  encode(kind.format, values, data);
  if (kind.blocks) {
    m.scale_block = 128;
    const auto scales = draw.numbers(((rows + 127) / 128) * ((cols + 127) / 128));
    m.block_scales = add_scales(drawn, scales.data(), scales.size() * sizeof(float), offset);
  }
  return drawn;
}

}  // namespace culprit::lab
