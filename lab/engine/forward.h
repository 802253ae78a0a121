// Forward: one step of a model, from tokens to logits, for rows of any requests. Every buffer is taken
// at construction; a step allocates nothing. The residual stream and all sums are floats; what a
// weight format rounds its input to is the only rounding between them. A row's result does not depend
// on the other rows, on the threads or on where the pool keeps its tokens.
// Heads, intermediates and vocabulary are as many as the matrices of this rank have. Ranks add up their
// parts behind the embedding, attention and the MLP, so that x has the same bits on all of them, and
// gather the scores of the whole vocabulary; a share without Ranks runs by itself, on its part alone.
#pragma once

#include <memory>
#include <string_view>

#include "lab/engine/gqa.h"
#include "lab/engine/mla.h"
#include "lab/engine/mlp.h"
#include "lab/engine/step.h"
#include "ranks/ranks.h"

namespace culprit::lab {

// The pool that these weights need, as far as they tell: layers and the width of a row.
PoolShape pool_shape(const Weights& weights);

class Forward {
 public:
  // Weights, pool, launcher and ranks must outlive it. ranks: those that hold the other shares of the
  // model, null: nobody does.
  static Result<std::unique_ptr<Forward>> make(const Weights& weights, Pool& pool,
                                               const Kernels& kernels, Launcher& launch,
                                               Reading reading, const StepLimits& limits,
                                               Ranks* ranks = nullptr);

  // Copies the rows to where the stream reads them; at most limits.rows. `rows` stay until it has.
  StepRows bring_in(Launcher& launch, std::span<const StepRow> rows);
  // Launches a step, which appends the rows' keys and values to the pool.
  void operator()(const StepRows& rows);
  // [vocab], of the `index`th row that wanted them; from the end of the step to the next one.
  std::span<const float> logits(std::int64_t index) const;
  std::int64_t bytes() const { return arena_.bytes(); }

 private:
  Forward(const Weights& weights, Pool& pool, const Kernels& kernels, Launcher& launch,
          const StepLimits& limits, Ranks* ranks);
  std::int64_t carve(Carver carver);

  void embed(const StepRows& rows);
  // x += y of the block before; then the norm of x, made ready for its readers.
  void normalise(std::string_view kernel, int layer, const Norm& gains, std::int64_t tokens,
                 const Input& in);
  void normalise_by_parts(int layer, const Norm& gains, std::int64_t tokens, const Input& in);
  void attention(int layer, const StepRows& rows);
  void all_reduce(std::string_view kernel, int layer, std::int64_t tokens, float* values);
  void head(const StepRows& rows);
  void gather_logits(std::int64_t wanted);
  std::int64_t vocab() const { return weights_.lm_head.rows * (ranks_ ? ranks_->size() : 1); }
  void score(const Batch& all);  // of the rows that want it

  const Weights& weights_;
  const ModelConfig& config_;
  StepLimits limits_;
  Ranks* ranks_;
  Tools tools_;
  RopeTable rope_;
  std::unique_ptr<MlaBlock> mla_;  // one of the two
  std::unique_ptr<GqaBlock> gqa_;
  MlpBlock mlp_;
  Arena arena_;
  float *x_ = nullptr, *y_ = nullptr, *normed_ = nullptr;  // [rows, hidden]
  bool y_pending_ = false;                                 // not yet added to x, as launched so far
  Sending sum_, gather_;
  StepRow* rows_ = nullptr;
  std::byte* head_in_ = nullptr;
  float* logits_ = nullptr;  // [logits, vocab]
  float *own_logits_ = nullptr,
        *gathered_ = nullptr;  // of ranks: [logits, part], [size, logits, part]
};

}  // namespace culprit::lab
