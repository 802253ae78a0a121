// Linear layers of a step. A launch is a list of tasks (weights, a prepared batch, where the results
// go), cut into pieces of some tens of kilobytes of weights, so that experts and heads of any number
// share the threads evenly and each weight is read once. What a piece gives does not depend on the cut.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "lab/engine/cut.h"
#include "lab/engine/launch.h"
#include "lab/kernels/kernels.h"
#include "lab/number/matrix.h"

namespace culprit::lab {

// One input of up to four matrices, made ready once for each way in which they read it (formats that
// differ, or NVFP4 input scales that do, are ways of their own). Its bytes lie in a buffer of the
// caller's; the object itself is small and made anew wherever the buffer is used.
class Input {
 public:
  static constexpr std::size_t kMostReaders = 4;
  // Enough for any formats; proportional to tokens.
  static std::int64_t bytes(std::int64_t tokens, std::int64_t cols, std::int64_t readers) {
    return tokens * readers * prepared_bytes(Activations::kFloat, cols);
  }

  // Readers that are empty matrices do not count.
  Input(std::byte* buffer, std::int64_t tokens, std::initializer_list<const Matrix*> readers);
  // Makes x [cols] ready as token `token`.
  void prepare(const Kernels& kernels, const float* x, std::int64_t token) const;
  Batch of(const Matrix& reader) const;

 private:
  struct Way {
    Batch batch;
    std::byte* data = nullptr;  // the batch's, to be written
  };
  const Way* find(const Matrix& reader) const;  // null: nobody reads it that way yet

  std::array<Way, kMostReaders> ways_;
  std::size_t count_ = 0;
};

struct LinearTask {
  const Matrix* weights = nullptr;
  Batch x;
  float* y = nullptr;  // y[t * y_stride + r]
  std::int64_t y_stride = 0;
};

class Linear {
 public:
  Linear(const Kernels& kernels, Launcher& launch) : kernels_(kernels), launch_(launch) {}
  void carve(Carver& carver, std::int64_t most_tasks) { cut_.carve(carver, most_tasks); }
  // Tasks without tokens or weights are left out of the bytes, and cost nothing.
  void operator()(std::string_view kernel, int layer, std::span<const LinearTask> tasks);
  void operator()(std::string_view kernel, int layer, std::initializer_list<LinearTask> tasks) {
    (*this)(kernel, layer, std::span(tasks.begin(), tasks.size()));
  }

 private:
  const Kernels& kernels_;
  Launcher& launch_;
  Cut cut_;
};

}  // namespace culprit::lab
