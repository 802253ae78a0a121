// The runs the forge knows: each a short description of one deployment, healthy or with a fault.
// To add one: write `Run make_x(const Choice&)` in recipe_x.cc from the parts in sglang.h, and a
// row in recipes.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "forge/run.h"

namespace culprit::forge {

// What the user asked for, as far as it changes the run itself.
struct Choice {
  std::vector<std::string_view> faults;  // names out of the recipe's list
  int world = 0;                         // 0: the recipe's own
  bool graph = false;                    // decode replays CUDA graphs
  std::string_view recipe;               // its name
  std::uint64_t draw = 1;                // of the planted recipes: which deployment
  bool has(std::string_view fault) const;
};

struct Fault {
  std::string_view name;
  std::string_view what;
};

struct Recipe {
  std::string_view name;
  std::string_view what;
  std::vector<Fault> faults;                   // that may be planted
  std::vector<std::string_view> usual_faults;  // planted if nothing is said
  std::vector<int> worlds;  // rank counts it can be sharded over; the first is usual; none: drawn
  Run (*make)(const Choice& choice);
};

std::span<const Recipe> recipes();

Run make_glm5(const Choice& choice);
Run make_dense(const Choice& choice);
Run make_host_bound(const Choice& choice);
Run make_prefill_mixed(const Choice& choice);
Run make_gaps(const Choice& choice);
Run make_ranks(const Choice& choice);
Run make_planted(const Choice& choice);

}  // namespace culprit::forge
