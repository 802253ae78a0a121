// A deployment drawn from a seed: GPU, size of the model, load. Every planted recipe is one of these.
// Invariant: what is drawn fits the GPU's memory, and its weights keep the device busier than the host.
// Figures of GPUs are the forge's own, rounded as data sheets round them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "forge/run.h"

namespace culprit::forge {

// SplitMix64 as a sequence.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::int64_t between(std::int64_t least, std::int64_t most);  // both included
  double share(double least, double most);
  std::int64_t one_of(std::initializer_list<std::int64_t> values);
  bool coin() { return (next() & 1) != 0; }

 private:
  std::uint64_t state_;
};

struct Gpu {
  Device device;
  double gbps = 0;    // of memory: bytes per nanosecond
  double tflops = 0;  // bf16, dense
  bool linked = false;
};

struct Geometry {
  Gpu gpu;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 128;
  std::int64_t width = 0;  // of the MLP
  std::int64_t vocab = 0;
  int world = 1;
  std::int64_t requests = 0;  // decoded together: rows of a step
  std::int64_t context = 0;   // tokens of a request so far
  std::int64_t pool_tokens = 0, page = 1;
  bool fp8_pool = false;
  bool awq = false;         // weights of four bits
  double memory_reach = 0;  // share of the memory's rate that GEMMs and attention reach
  double host_share = 0;    // host work of a healthy eager step over its device time

  std::int64_t shard(std::int64_t whole) const { return whole / world; }
  std::int64_t kv_width() const { return shard(kv_heads) * head_dim; }
  std::int64_t qkv_width() const { return shard(heads) * head_dim + 2 * kv_width(); }
  std::int64_t pool_slots() const { return pool_tokens + page; }  // one page of padding
  std::int64_t layer_weights() const;                             // elements, of a rank
  // Nanoseconds for bytes at the reach, and for operations at two thirds of the peak.
  Nanos memory_time(std::int64_t bytes) const;
  Nanos gemm_time(std::int64_t rows, std::int64_t n, std::int64_t k) const;
};

// What a case asks of the draw.
struct Wish {
  std::int64_t least_requests = 1, most_requests = 64;
  std::int64_t least_context = 512, most_context = 8'192;
  int least_world = 1, most_world = 1;
  bool fp8_pool = false, awq = false;
  bool pcie = false;                                 // no links between the GPUs
  bool linked = false;                               // links between them
  Nanos least_layer = 75'000, most_layer = 700'000;  // time to read a layer's 16-bit weights
  std::int64_t least_vocab = 0, most_vocab = 1'000'000;
};

Geometry draw(Random& random, const Wish& wish);

// The files that lie beside it.
Configs drawn_configs(const Geometry& geometry, bool graph);

}  // namespace culprit::forge
