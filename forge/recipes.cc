#include "forge/recipes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "forge/planted.h"

namespace culprit::forge {

bool Choice::has(std::string_view fault) const {
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

namespace {
Recipe ranks_recipe() {
  return {"ranks",
          "a drawn model on 8 linked GPUs, two NCCL all-reduces a layer: write it with --rank "
          "all; rank (3 x draw) mod 8 may be late",
          {{"slow-clock", "its kernels take 18 % longer: a low clock, or throttling"},
           {"more-work", "its attention has 2.2 times the blocks, and takes as much longer"},
           {"slow-host", "its host takes 3.4 times as long"},
           {"gc", "its host collects garbage in every second step, for 1.5 steps"}},
          {"slow-clock"},
          {8},
          make_ranks};
}

std::vector<Recipe> all_recipes() {
  std::vector<Recipe> all = {
      Recipe{"glm5",
             "GLM-5-NVFP4, 8 x RTX PRO 6000 Blackwell, SGLang FlashInfer MLA, FP8 KV pool, decode "
             "of one stream",
             {{"whole-pool-cast", "each layer casts the whole KV pool to bf16 before attention"},
              {"slow-host",
               "host work takes 4.7 times as long: without the casts, launches bound the step"},
              {"straggler",
               "the last rank's kernels take 15 % longer; the others wait in their all-reduces"}},
             {"whole-pool-cast"},
             {8, 1, 2, 4, 16},
             make_glm5},
      Recipe{"dense",
             "Llama-3.1-8B bf16, one H100, SGLang FlashInfer, decode of 16 streams; healthy unless "
             "--fault",
             {{"whole-pool-cast",
               "an FP8 pool, keys and values cast to bf16 as a whole in each layer"},
              {"layout-copy", "attention's output is flattened through a copy of 5 us"},
              {"weight-dequant", "4-bit weights are unpacked to bf16 before every GEMM"},
              {"low-occupancy", "attention runs on 24 blocks: six times its time"},
              {"step-stall", "one step of 40 compiles a kernel for 1.9 s"},
              {"slow-host", "host work takes 4 times as long"}},
             {},
             {1},
             make_dense},
      Recipe{"host-bound",
             "the same model, eager, decode of one stream",
             {{"slow-host", "host work takes 8 times as long: launches bound the step"}},
             {"slow-host"},
             {1},
             make_host_bound},
      Recipe{"prefill-mixed",
             "the same model, decode of 32 streams of 4,096 tokens",
             {{"prefill-interference", "a prefill of 16,384 tokens after every tenth decode step"}},
             {"prefill-interference"},
             {1},
             make_prefill_mixed},
      Recipe{"gaps",
             "dense, each step ending in a blocking copy of its tokens",
             {{"late-results", "0.5 ms of host work between that copy and the next step"}},
             {"late-results"},
             {1},
             make_gaps},
      ranks_recipe(),
  };
  for (const auto faults : {device_faults(), host_faults()}) {
    for (const Planted& planted : faults) {
      all.push_back({planted.name,
                     planted.what,
                     {{planted.name, planted.what}},
                     {planted.name},
                     {},
                     make_planted});
    }
  }
  return all;
}
}  // namespace

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> kRecipes = all_recipes();
  return kRecipes;
}

}  // namespace culprit::forge
