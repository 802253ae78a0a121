// MLA's kv_b, absorbed: per head a matrix that takes q_nope to the latent space (k_b [L, P]) and one
// that takes the attended latent to values (v_b [V, L]), so that attention works on the cached rows
// as they are. Borrowed where the checkpoint splits kv_b; else written once at load, BF16 from BF16,
// FP8 and quantised types (as servers do), F32 from F16 and F32.
// Bytes: heads x (P + V) x L numbers per layer.
#pragma once

#include <vector>

#include "lab/engine/memory.h"
#include "lab/model/weights.h"

namespace culprit::lab {

struct AbsorbedLayer {
  std::vector<Matrix> k_b, v_b;  // per head of this rank
};

class Absorbed {
 public:
  static Result<Absorbed> make(const Weights& weights, std::int64_t heads);
  const AbsorbedLayer& layer(int index) const { return layers_[static_cast<std::size_t>(index)]; }

 private:
  Arena arena_;
  std::vector<AbsorbedLayer> layers_;
};

}  // namespace culprit::lab
