// Attention of a step over the paged pool, in the three ways in which servers read an FP8 pool:
//   pool-cast    the layer's whole pool to BF16, every layer and step, then attention over the copy:
//                bytes grow with the pool, not with what is alive in it (the founding case);
//   gather-cast  the rows that this step reads to BF16, then attention over those;
//   fused        the attention kernel reads the FP8 rows where they lie.
// All give the same numbers, bit for bit. On a BF16 pool there is nothing to cast and all are one.
// Positions are split over the threads (split-KV) by their number alone, and the parts are merged in
// order, so that the result does not depend on threads, batch or pool layout.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "lab/engine/cut.h"
#include "lab/engine/launch.h"
#include "lab/engine/pool.h"
#include "lab/kernels/kernels.h"

namespace culprit::lab {

enum class Reading : std::uint8_t { kPoolCast, kGatherCast, kFused };
std::string_view reading_name(Reading reading);  // "pool-cast", "gather-cast", "fused"
Result<Reading> reading_named(std::string_view name);

// The cached rows that a token attends to: those in slots index[0, count). Tokens that share an
// index share its rows.
struct Reach {
  const std::int32_t* index = nullptr;
  std::int64_t count = 0;
};

// How the heads of a model lie in queries and rows.
struct HeadLayout {
  std::int64_t heads = 0;   // of this rank
  std::int64_t groups = 1;  // that share rows: 1 in MLA, kv_heads in GQA
  std::int64_t width = 0, value_width = 0;
  std::int64_t key_step = 0, value_at = 0, value_step = 0;  // numbers: group g's place in a row
  float scale = 1;
};

struct AttentionLimits {
  std::int64_t tokens = 0;    // in a step
  std::int64_t gathered = 0;  // rows that a step may gather in all
};

class Attention {
 public:
  Attention(const Kernels& kernels, Launcher& launch, const Pool& pool, const HeadLayout& layout,
            Reading reading, const AttentionLimits& limits);
  void carve(Carver& carver);

  // q [tokens, heads, width] against each token's reach, which is read when the stream comes to it;
  // the result is settled head by head.
  void operator()(int layer, std::span<const Reach> reaches, const float* q);
  // Merges and divides heads [begin, end) of a token; out() then holds them.
  void settle(std::int64_t token, std::int64_t begin, std::int64_t end) const;
  float* out(std::int64_t token) const {  // [heads, value_width]
    return out_ + token * layout_.heads * layout_.value_width;
  }

 private:
  struct Split {
    std::int64_t length = 0, parts = 1;
  };
  static Split split(std::int64_t count);
  bool casts() const {
    return pool_.shape().format == KvFormat::kE4m3 && reading_ != Reading::kFused;
  }
  // Copies that a fault makes of an unchanged row format; kNone: rows are read where they lie.
  enum class Copies : std::uint8_t { kNone, kPool, kRows };
  Copies copies() const;
  void cast_pool(int layer);
  void copy_pool(int layer);
  void copy_rows(int layer, std::span<const Reach> reaches);
  void gather(int layer, std::span<const Reach> reaches);
  std::int64_t place_gathered(std::span<const Reach> reaches);
  std::int64_t place_parts(std::span<const Reach> reaches, Launch& launch);
  KvRows copied_rows(const Reach& reach, std::int64_t token) const;
  KvRows rows_of(int layer, const Reach& reach, std::int64_t token) const;
  Partial partial(std::int64_t token, std::int64_t part, std::int64_t head) const;
  Partial extra(std::int64_t slot, std::int64_t head) const;
  std::int64_t number_bytes() const;  // of a number in the rows that are attended to
  void attend(int layer, std::span<const Reach> reaches, const float* q);
  void attend_part(const float* q, const KvRows& rows, std::int64_t length, const Cut::Part& part,
                   int thread) const;

  const Kernels& kernels_;
  Launcher& launch_;
  const Pool& pool_;
  HeadLayout layout_;
  Reading reading_;
  AttentionLimits limits_;
  Bf16* copy_ = nullptr;                    // of the pool, or of the gathered rows
  std::byte* same_copy_ = nullptr;          // the same in the pool's own format
  std::int64_t* gathered_first_ = nullptr;  // [tokens] the first row of a token's reach in copy_
  float *out_ = nullptr, *max_ = nullptr, *sum_ = nullptr;  // of each token's first part
  float* extra_ = nullptr;                                  // partials beyond the first
  std::int64_t parallel_ = 0;      // so many tokens at most have their parts side by side
  bool side_by_side_ = false;      // of the last run
  std::int64_t* parts_ = nullptr;  // [tokens] of the last run
  Cut cut_;
};

}  // namespace culprit::lab
