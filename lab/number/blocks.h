// ggml's block types as they lie in a GGUF file, byte for byte. Source: ggml-common.h, ggml-quants.c.
// Traps: both FP4 types hold doubled codes with half the scale, and order the nibbles differently
// from ModelOpt: within a block of 32 (MXFP4) or 16 (NVFP4), byte j holds element j low and the
// element half a block further high.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::lab {

struct BlockQ8_0 {  // 32 values: d x qs
  static constexpr std::int64_t kValues = 32;
  std::uint16_t d;  // half
  std::int8_t qs[32];
};
struct BlockQ4_K {  // 256 values: 8 sub-blocks of 32 with 6-bit scales and mins
  static constexpr std::int64_t kValues = 256;
  std::uint16_t d, dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
struct BlockQ6_K {  // 256 values: 16 sub-blocks of 16
  static constexpr std::int64_t kValues = 256;
  std::uint8_t ql[128], qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
struct BlockMxfp4 {
  static constexpr std::int64_t kValues = 32;
  std::uint8_t e;  // UE8M0
  std::uint8_t qs[16];
};
struct BlockNvfp4 {
  static constexpr std::int64_t kValues = 64;
  std::uint8_t d[4];  // UE4M3, one per 16
  std::uint8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockMxfp4) == 17 && sizeof(BlockNvfp4) == 36);

// values.size() is a multiple of kValues; blocks holds values.size() / kValues of them.
void quantize(std::span<const float> values, BlockQ8_0* blocks);
void quantize(std::span<const float> values, BlockQ4_K* blocks);
void quantize(std::span<const float> values, BlockQ6_K* blocks);
void quantize(std::span<const float> values, BlockMxfp4* blocks);
void quantize(std::span<const float> values, BlockNvfp4* blocks);
void dequantize(const BlockQ8_0* blocks, std::span<float> values);
void dequantize(const BlockQ4_K* blocks, std::span<float> values);
void dequantize(const BlockQ6_K* blocks, std::span<float> values);
void dequantize(const BlockMxfp4* blocks, std::span<float> values);
void dequantize(const BlockNvfp4* blocks, std::span<float> values);

}  // namespace culprit::lab
