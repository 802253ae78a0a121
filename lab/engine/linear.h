// Linear layers of a step. A launch is a list of tasks (weights, a prepared batch, where the results
// go), cut into pieces of some tens of kilobytes of weights, so that experts and heads of any number
// share the threads evenly and each weight is read once. What a piece gives does not depend on the cut.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>

#include "lab/engine/cut.h"
#include "lab/engine/launch.h"
#include "lab/engine/operators.h"
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

// Tasks of a launch that are known once the stream comes to it. Its buffers are carved, and belong to
// the stream while launches that read them wait.
class LinearPlan {
 public:
  void carve(Carver& carver, std::int64_t most_tasks);
  void clear();
  void add(const LinearTask& task);
  std::int64_t complete(Launch& launch) const;  // its format, shape and bytes; the pieces
  void run(const Kernels& kernels, std::int64_t piece) const;

 private:
  LinearTask* tasks_ = nullptr;
  std::int64_t count_ = 0;
  Cut cut_;
  Launch sum_;
};

class Linear {
 public:
  Linear(const Kernels& kernels, Launcher& launch) : kernels_(kernels), launch_(launch) {}
  // FP8 weights of one layer after the other, to be unpacked to BF16 before each use. The sums stay the
  // same to the bit, for scales are applied as before. Then carve() takes room for a layer's.
  void unpack_before_use(std::initializer_list<const Matrix*> layer);
  void carve(Carver& carver);
  // Up to kMostTasks tasks that read one input. Those without tokens or weights are left out of the
  // bytes, and cost nothing.
  void operator()(std::string_view kernel, int layer, std::initializer_list<LinearTask> tasks,
                  profile::Location line = profile::Location::here());
  // What `plan` holds when the stream comes to it; `gemm` tells a recorder of it.
  void operator()(std::string_view kernel, int layer, const LinearPlan& plan, const Gemm& gemm,
                  profile::Location line = profile::Location::here());
  // `count` tasks of one shape: task_of(i) gives the ith, on any thread.
  template <class TaskOf>
  void each(std::string_view kernel, int layer, std::int64_t count, const TaskOf& task_of,
            profile::Location line = profile::Location::here()) {
    const Each all = begin_each(kernel, layer, count, task_of(0));
    const GemmOp op(launch_, all.gemm, line);
    launch_(all.launch, count * all.parts,
            [&kernels = kernels_, task_of, rows = all.gemm.rows, part = all.part,
             parts = all.parts](std::int64_t piece, int) {
              const std::int64_t first = piece % parts * part;
              run(kernels, task_of(piece / parts), first, std::min(first + part, rows));
            });
  }

 private:
  static constexpr std::size_t kMostTasks = 4;
  // Tasks with their pieces, small enough for a slot of the stream.
  struct Few {
    std::array<LinearTask, kMostTasks> tasks;
    std::array<std::int32_t, kMostTasks> end{}, part{};  // pieces up to and with it; rows of one
  };
  struct Each {
    Launch launch;
    Gemm gemm;
    std::int64_t part = 1, parts = 0;  // rows of a piece, pieces of a task
  };
  static Each begin_each(std::string_view kernel, int layer, std::int64_t count,
                         const LinearTask& one);
  static void run(const Kernels& kernels, const LinearTask& task, std::int64_t begin,
                  std::int64_t end) {
    kernels.linear(*task.weights, task.x, begin, end, task.y, task.y_stride);
  }

  struct Unpacked {
    Matrix matrix;
    std::int64_t at = 0;  // in unpacked_
  };
  // The task over its unpacked weights, if they are to be unpacked: by a kernel that is launched first.
  LinearTask unpack(int layer, const LinearTask& task, profile::Location line);

  const Kernels& kernels_;
  Launcher& launch_;
  std::map<const Matrix*, Unpacked> unpacked_of_;
  Bf16* unpacked_ = nullptr;
  std::int64_t most_unpacked_ = 0;  // numbers of a layer
};

}  // namespace culprit::lab
