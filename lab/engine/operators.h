// What a recording calls the work of a step: operators with shapes as PyTorch and SGLang record them,
// kernels by what runs, element types in PyTorch's words. The words describe; none of them judges.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lab/engine/launch.h"
#include "lab/kernels/batch.h"
#include "lab/kernels/kernels.h"

namespace culprit::lab {

profile::Dtype dtype_of(Format format);  // a type that PyTorch lacks by the name of its format
profile::Dtype dtype_of(KvFormat format);
profile::Dtype dtype_of(Activations kind);

// What makes inputs ready for linear layers: rounds them to what the weights' kernels read.
profile::Name prepare_symbol(Activations kind);
class PrepareOp {
 public:
  PrepareOp(const Launcher& launcher, Activations kind, std::int64_t tokens, std::int64_t width,
            profile::Location line = profile::Location::here());

 private:
  std::optional<profile::Op> op_;
};

// Linear layers: y [count, tokens, rows] = x [count, tokens, cols] w^T, w [count, rows, cols].
struct Gemm {
  enum class Kind : std::uint8_t {
    kPlain,
    kBatched,
    kExperts
  };  // experts: each token some of them
  Kind kind = Kind::kPlain;
  std::int64_t count = 1;  // of heads or experts
  std::int64_t tokens = 0, rows = 0, cols = 0;
  Format format = Format::kF32;
  Activations input = Activations::kFloat;
};
profile::Name symbol_of(const Gemm& gemm);

// aten::linear and aten::bmm where the types are PyTorch's.
class GemmOp {
 public:
  GemmOp(const Launcher& launcher, const Gemm& gemm, profile::Location line);

 private:
  std::optional<profile::Op> op_;
};

}  // namespace culprit::lab
