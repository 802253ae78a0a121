// One deployment on eight linked GPUs, whose ranks meet in two NCCL all-reduces a layer; one of them
// may be late, for one reason. Which one is late follows from --draw.
#include <string>

#include "forge/draft.h"
#include "forge/recipes.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

constexpr int kWorld = 8;
constexpr std::string_view kScheduler = "managers/scheduler.py";

// Few layers: a trace of eight ranks is eight times one.
Wish eight_linked_ranks() {
  Wish wish;
  wish.least_world = wish.most_world = kWorld;
  wish.linked = true;
  wish.least_requests = 24;
  wish.most_context = 6'000;
  wish.least_context = 3'000;
  wish.most_layer = 160'000;
  wish.least_layer = 60'000;
  return wish;
}

// The scheduler tidies up between the steps, on every rank; where there is much to tidy, that takes.
Call collect_garbage() {
  Call call;
  call.stack = {builtin("function collect", kScheduler, 1120)};
  call.host = 15'000;
  call.pauses = true;
  return call;
}

Late late_of(const Choice& choice, const Draft& draft) {
  Late late;
  late.rank = static_cast<int>(choice.draw * 3 % kWorld);
  if (choice.has("slow-clock")) late.kernels = 1'180;
  if (choice.has("more-work")) late.load = 2'200;
  if (choice.has("slow-host")) late.host = 3'400;
  if (choice.has("gc")) {
    late.pause = device_time(draft) * 3 / 2;
    late.pause_every = 2;
  }
  return late;
}

}  // namespace

Run make_ranks(const Choice& choice) {
  Random random(choice.draw);
  Geometry geometry = draw(random, eight_linked_ranks());
  Draft draft = make_draft(geometry, 0);
  const Nanos time = random.between(5'500, 8'500);
  replace(draft.layer, Role::kReduce,
          {all_reduce(reduce_frames(), geometry.requests, geometry.hidden, kWorld, {time, 9'200})});
  for (const Role role : {Role::kAttention, Role::kStore})
    change(draft.layer, role, [](Call& call) { call.launches.front().by_load = true; });
  draft.results.push_back({Role::kAdded, collect_garbage()});
  balance(draft, geometry.host_share);

  Run run = draft.run;
  run.name = "ranks";
  run.latency = random.between(3'600, 5'200);
  run.gap = random.between(350, 700);
  run.graph_gap = random.between(250, 450);
  run.leave = 3'000;
  run.steps = {step_of(draft, choice.graph)};
  run.pattern = {0};
  run.default_steps = 12;
  run.late = late_of(choice, draft);
  run.configs = drawn_configs(geometry, choice.graph);
  return run;
}

}  // namespace culprit::forge
