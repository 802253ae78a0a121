// The tensors of a model, one list for everybody: who reads a checkpoint binds what lies under each
// name into its place, who makes one fills the places and writes them. A layer at a time, so that a
// claim of many layers costs nothing before the first has been found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/model/weights.h"

namespace culprit::lab {

enum class Naming : std::uint8_t { kHf, kGguf };

enum class Role : std::uint8_t {
  kEmbedding,
  kHead,
  kAttention,    // linear layers of attention
  kKvB,          // MLA's kv_b
  kKeyB,         // GGUF: its rows of keys, transposed per head
  kValueB,       // GGUF: its rows of values
  kIndexer,      // its q_b and k
  kIndexWeight,  // its weights
  kRouter,
  kMlp,     // dense, experts, shared
  kGain,    // of a norm
  kOffset,  // of a LayerNorm
  kBias,    // of the router
};

// How ranks divide a matrix among them (lab/model/share.h).
enum class Division : std::uint8_t {
  kNone,  // each has all of it
  kRows,
  kCols,
  kKvRows,  // by KV heads, of which each has one at least
};

// One tensor: a matrix [rows, cols], or a vector of `rows` values (cols 0).
struct Slot {
  std::string name;  // in the given naming, with ".weight" or ".bias" where it has one
  Role role = Role::kMlp;
  std::int64_t rows = 0, cols = 0;
  Matrix* matrix = nullptr;
  std::vector<float>* vector = nullptr;
  // Which of a layer's experts this is, or -1. GGUF keeps them in one tensor [experts, rows, cols].
  std::int64_t expert = -1;
  Division division = Division::kNone;
  std::int64_t units = 0;  // heads that a division leaves whole; 0: any row or column is one
  bool turned = false;     // kGqa's q and k: rows in the order that rotary positions turn them
  double gain = 1;         // how large its outputs are for inputs of size 1, in a random model
  std::string canonical;   // the name in kHf, whatever `name` is
};

// Embedding, final norm and head; the head only where it is not the embedding. weights.config says
// the shapes, and the places are in `weights`, which must not move.
std::vector<Slot> outer_slots(Weights& weights, Naming naming);
// Those of a layer; weights.layers[layer] is there.
std::vector<Slot> layer_slots(Weights& weights, std::int64_t layer, Naming naming);

}  // namespace culprit::lab
