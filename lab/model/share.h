// A rank's share of a model, divided as SGLang and vLLM divide it: heads, inner dimensions of MLPs and
// the vocabulary (embedding and head) in equal parts; q_a, kv_a, the indexer, routers and norms whole on
// every rank; a KV head at least on each. Experts are cut like MLPs, or (expert parallel) whole ones are
// dealt to groups of ranks: rank r is in group r / (of / expert_groups), which cuts its experts among
// its own ranks. A part is cut out of the whole, block scales included: what a block boundary would
// have to go through is an error that names the tensor.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "lab/model/slots.h"

namespace culprit::lab {

struct Shard {
  std::int64_t rank = 0, of = 1;
  std::int64_t expert_groups = 1;  // divides `of`; 1: every rank has a part of each expert
};

// Rows [row, row + rows) and columns [col, col + cols) of a tensor.
struct Share {
  std::int64_t row = 0, rows = 0, col = 0, cols = 0;
  bool empty() const { return rows == 0; }  // an expert of other ranks
};
inline Share whole_of(const Slot& slot) { return {0, slot.rows, 0, slot.cols}; }

// `like`: the format and scale blocks of the slot's matrix. Errors name what does not divide.
Result<Share> share_of(const ModelConfig& config, const Slot& slot, const Matrix& like,
                       const Shard& shard);

}  // namespace culprit::lab
