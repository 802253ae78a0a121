#include "forge/recipes.h"

#include <algorithm>
#include <array>

namespace culprit::forge {

bool Choice::has(std::string_view fault) const {
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

std::span<const Recipe> recipes() {
  static const std::array kRecipes = {
      Recipe{"glm5",
             "GLM-5-NVFP4, 8 x RTX PRO 6000 Blackwell, SGLang FlashInfer MLA, FP8 KV pool, decode "
             "of one stream",
             {{"whole-pool-cast", "each layer casts the whole KV pool to bf16 before attention"},
              {"slow-host",
               "host work takes 3.3 times as long: launches bound what the casts do not"}},
             {"whole-pool-cast"},
             make_glm5},
  };
  return kRecipes;
}

}  // namespace culprit::forge
