// The arithmetic of a decode step: one table of functions per instruction set, all with one meaning,
// that of kReference. No kernel allocates, starts a thread or keeps state; each works on a range,
// so that the caller divides the work as it likes; what a linear layer gives does not depend on how
// its rows or its batch were divided. Data may lie at any address; prepared batches begin at a multiple of 64.
// Tolerances are stated and checked in check.h.
#pragma once

#include <cstdint>

#include "lab/kernels/batch.h"
#include "lab/kernels/isa.h"
#include "lab/number/bf16.h"
#include "lab/number/matrix.h"

namespace culprit::lab {

enum class KvFormat : std::uint8_t { kBf16, kE4m3 };

// Rows of a KV pool, read where they lie. Position i of a request is row index[i], or i itself.
struct KvRows {
  KvFormat format = KvFormat::kBf16;
  const std::byte* data = nullptr;
  std::int64_t stride = 0;              // bytes from one row to the next
  const std::int32_t* index = nullptr;  // the page table, flattened to slots; none: rows in order
  std::int64_t scale_at = -1;           // byte in each row of the float that scales it; -1: none
};

// The heads that share their rows: all heads of the rank in absorbed MLA, one group in GQA.
struct Query {
  const float* q = nullptr;           // [heads, width]
  std::int64_t heads = 0, width = 0;  // MLA: 576
  std::int64_t value_width = 0;       // MLA: 512
  float scale = 1;                    // of the scores, before the softmax
};

// A softmax over part of the positions: out is the sum of exp(score - max) x value, not yet divided.
struct Partial {
  float* max = nullptr;  // [heads]; minus infinity where there was no position
  float* sum = nullptr;  // [heads]
  float* out = nullptr;  // [heads, value_width]
};

struct Kernels {
  // ---- linear layers -----------------------------------------------------------------------
  // One token into its place of a batch. input_scale: kNvfp4 only.
  void (*prepare)(Activations kind, const float* x, std::int64_t cols, float input_scale,
                  std::byte* prepared);
  // y[t * y_stride + r] for all tokens t and weight rows r of [begin, end); a row is read from
  // memory once for all tokens. x.kind is activations_for(weights).
  void (*linear)(const Matrix& weights, const Batch& x, std::int64_t begin, std::int64_t end,
                 float* y, std::int64_t y_stride);
  // kNvfp4 x kNvfp4: the exact sums of products of doubled codes, per block of 16 (thus 4 x the
  // true sum); `linear` computes with these. dots: [cols / 16].
  void (*nvfp4_block_dots)(const Matrix& weights, std::int64_t row, const Batch& x,
                           std::int64_t token, std::int32_t* dots);

  // ---- rows of n numbers; out may be x ---------------------------------------------------------
  void (*rms_norm)(const float* x, const float* gain, float eps, std::int64_t n, float* out);
  void (*layer_norm)(const float* x, const float* gain, const float* bias, float eps,
                     std::int64_t n, float* out);
  // Pairs (2i, 2i + 1), or (i, i + n / 2) where half_split; cos, sin: [n / 2].
  void (*rope)(float* x, const float* cos, const float* sin, std::int64_t n, bool half_split);
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*softmax)(const float* x, std::int64_t n, float* out);
  void (*add_scaled)(const float* x, float scale, std::int64_t n, float* sum);  // sum += scale x

  // ---- casts; to_e4m3 saturates at 448 -----------------------------------------------------------
  void (*to_bf16)(const float* x, std::int64_t n, Bf16* out);
  void (*from_bf16)(const Bf16* x, std::int64_t n, float* out);
  void (*to_e4m3)(const float* x, std::int64_t n, std::uint8_t* out);
  void (*from_e4m3)(const std::uint8_t* x, std::int64_t n, float* out);

  // ---- the KV pool -----------------------------------------------------------------------------
  // n numbers in one piece, by stores that pass the caches: for pools that no cache holds.
  void (*cast_pool)(const std::uint8_t* e4m3, std::int64_t n, Bf16* out);
  // Positions [begin, end) to out + (i - begin) x width, BF16, through the caches; rows' own
  // scales are not applied.
  void (*gather_cast)(const KvRows& rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                      Bf16* out);
  // Attention of one token over positions [begin, end), whatever form the rows have: a row is
  // loaded once for all heads. In MLA, values are the first value_width numbers of the key rows
  // (pass the same rows twice). Writes all of `partial`; the same numbers for E4M3 rows as for
  // their cast to BF16, bit for bit.
  void (*attend)(const Query& query, const KvRows& keys, const KvRows& values, std::int64_t begin,
                 std::int64_t end, Partial partial);
  // `into` becomes the partial of both ranges.
  void (*merge)(Partial into, Partial other, std::int64_t heads, std::int64_t value_width);
  // out divided by sum: the attention's output, once all ranges are merged.
  void (*finish)(Partial partial, std::int64_t heads, std::int64_t value_width);
  // DSA: scores[i - begin] = sum over h of head_weight[h] x max(0, scale x q_h . key_i).
  void (*index_scores)(const Query& query, const float* head_weight, const KvRows& keys,
                       std::int64_t begin, std::int64_t end, float* scores);

  // ---- memory alone, to measure what the machine can move: at 64, n a multiple of 256 ------------
  std::uint64_t (*read_memory)(const std::byte* p, std::int64_t n);
  void (*write_memory)(std::byte* p, std::int64_t n);                         // past the caches
  void (*copy_memory)(const std::byte* from, std::int64_t n, std::byte* to);  // likewise
};

const Kernels& kernels(Isa isa);  // one that this machine has; else kPortable

}  // namespace culprit::lab
