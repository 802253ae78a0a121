// The suspects that a trace of one rank can show, each planted in a drawn deployment. The twin is the
// same draw with the cure in place.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forge/draft.h"

namespace culprit::forge {

// A further kind of step.
struct Kind {
  Draft draft;
  bool graphs = false;
  std::string name = "DECODE";
  int tokens = 0;  // 0: one for each request
};

struct Scene {
  Draft draft;  // kind 0
  std::vector<Kind> more;
  std::vector<int> pattern = {0};
  int steps = 6;
  bool graph = false;  // decode replays graphs
};

struct Planted {
  std::string_view name;  // of the suspect
  std::string_view what;
  Wish (*wish)(Random& random);
  void (*plant)(Scene& scene, Random& random);
  void (*cure)(Scene& scene, Random& random);  // null: the draw itself is healthy
};

// Cause on the device, and on the host or between the steps.
std::span<const Planted> device_faults();
std::span<const Planted> host_faults();

}  // namespace culprit::forge
