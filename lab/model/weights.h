// A model's weights, bound: each a Matrix borrowed from a checkpoint, with its shape on its line. Those
// of one rank are parts of these shapes, beside the config of the whole model (lab/model/share.h).
// H hidden, N heads, L kv_lora_rank, R rope_dim, P nope_dim, V v_dim, E experts, I intermediate.
#pragma once

#include <vector>

#include "lab/model/config.h"
#include "lab/number/matrix.h"

namespace culprit::lab {

using Norm = std::vector<float>;  // gains, and where a LayerNorm needs them, biases apart

struct Mlp {
  Matrix gate, up;  // [I, H]
  Matrix down;      // [H, I]
};

struct IndexerWeights {
  Matrix q_b;  // [heads x head_dim, q_lora_rank]
  Matrix k;    // [head_dim, H]
  Norm k_norm, k_bias;
  Matrix weights;  // [heads, H]
};

struct MlaWeights {
  Matrix q_a;  // [q_lora_rank, H]
  Norm q_a_norm;
  Matrix q_b;   // [N x (P + R), q_lora_rank]; without a q_a: [N x (P + R), H]
  Matrix kv_a;  // [L + R, H]
  Norm kv_a_norm;
  // kv_b [N x (P + V), L], or as GGUF splits it: k_b [N x L, P] (that is, transposed per head)
  // and v_b [N x V, L].
  Matrix kv_b, k_b, v_b;
  Matrix o;  // [H, N x V]
  IndexerWeights indexer;
};

struct GqaWeights {
  Matrix q;     // [N x head_dim, H]
  Matrix k, v;  // [kv_heads x head_dim, H]
  Matrix o;     // [H, N x head_dim]
  Norm q_norm, k_norm;
};

struct LayerWeights {
  Norm attention_norm, mlp_norm;
  MlaWeights mla;  // of the family that the config states
  GqaWeights gqa;
  Mlp dense;                 // of a layer without experts
  Matrix router;             // [E, H]
  std::vector<float> bias;   // [E] e_score_correction_bias
  std::vector<Mlp> experts;  // [E]; empty ones are other ranks'
  Mlp shared;                // of shared experts together: I x shared
};

struct Weights {
  ModelConfig config;
  Matrix embedding;  // [vocab, H]
  std::vector<LayerWeights> layers;
  Norm norm;
  Matrix lm_head;  // [vocab, H]; the embedding where those are tied
};

// Every matrix that is there, but for an embedding that is not the head.
std::vector<Matrix*> matrices_of(Weights& weights);

}  // namespace culprit::lab
