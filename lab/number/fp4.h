// E2M1, four bits: sign (bit 3) and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6. Doubled, all are integers,
// which is what the kernels multiply. And the two ways of scaling blocks of it:
//   NVFP4 (ModelOpt): blocks of 16 along k, an E4M3 scale each, and one float per tensor;
//   MXFP4 (OCP):      blocks of 32 along k, a UE8M0 scale each.
// Packing of both: the even element is the low nibble. Sources: Model-Optimizer nvfp4_tensor.py,
// flashinfer quantization_utils.cuh (cvt_warp_fp16_to_fp4), OCP MX 1.0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::lab {

inline constexpr std::int64_t kNvfp4Block = 16, kMxfp4Block = 32;

float from_e2m1(std::uint8_t code);  // of the low four bits
int doubled_e2m1(std::uint8_t code);
// Nearest, ties to the even code; above 6 it is 6; NaN is 0. The sign bit is set where value < 0, so
// -0 gives 0 and what rounds to zero from below gives 8, as in ModelOpt.
std::uint8_t to_e2m1(float value);

// A matrix [rows, cols] in NVFP4, as a ModelOpt checkpoint holds it. cols is a multiple of 16.
struct Nvfp4 {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::uint8_t> codes;   // [rows, cols / 2]
  std::vector<std::uint8_t> scales;  // E4M3 [rows, cols / 16], linear
  float scale_2 = 0;                 // of the tensor: amax / (6 x 448)
};
// Weights: a block's scale is its amax / (6 x scale_2) within [2^-9, 448]; 1 where the block is zero.
std::uint8_t nvfp4_scale(float block_amax, float scale_2);  // as an E4M3 code
Nvfp4 quantize_nvfp4(std::span<const float> weights, std::int64_t rows, std::int64_t cols);
std::vector<float> dequantize(const Nvfp4&);

// One row of activations: `scale` is the layer's input_scale (amax / (6 x 448) when calibrated).
// With G = 1 / scale: block scale E4M3(G x amax / 6), codes E2M1(x / (that / G)), each operation
// rounded to float and from left to right; all codes 0 where the block scale is 0. scale > 0.
void quantize_activations(std::span<const float> row, float scale, std::uint8_t* codes,
                          std::uint8_t* scales);

struct Mxfp4 {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::uint8_t> codes;   // [rows, cols / 2]
  std::vector<std::uint8_t> scales;  // UE8M0 [rows, cols / 32]
};
// UE8M0 of a block's scale: 2^(floor(log2 amax) - 2), so that amax / scale lies in [4, 8).
std::uint8_t mxfp4_scale(float amax);
Mxfp4 quantize_mxfp4(std::span<const float> weights, std::int64_t rows, std::int64_t cols);
std::vector<float> dequantize(const Mxfp4&);

}  // namespace culprit::lab
