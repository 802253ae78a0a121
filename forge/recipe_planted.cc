// The planted recipes: one for each suspect, of a deployment drawn by --draw.
#include <string>

#include "forge/planted.h"
#include "forge/recipes.h"

namespace culprit::forge {
namespace {

const Planted* find(std::string_view name) {
  for (const auto faults : {device_faults(), host_faults()}) {
    for (const Planted& planted : faults) {
      if (planted.name == name) return &planted;
    }
  }
  return nullptr;
}

Step step_of_kind(const Kind& kind) {
  Step step = step_of(kind.draft, kind.graphs);
  step.kind = kind.name;
  if (kind.tokens > 0) step.tokens = kind.tokens;
  return step;
}

}  // namespace

Run make_planted(const Choice& choice) {
  const Planted& planted = *find(choice.recipe);
  Random random(choice.draw);
  Scene scene;
  scene.graph = choice.graph;
  const Geometry geometry = draw(random, planted.wish(random));
  scene.draft = make_draft(geometry, 0);
  const auto change = choice.has(planted.name) ? planted.plant : planted.cure;
  if (change != nullptr) change(scene, random);

  Run run = scene.draft.run;
  run.name = std::string(planted.name);
  run.latency = random.between(3'600, 5'200);
  run.gap = random.between(350, 700);
  run.graph_gap = random.between(250, 450);
  run.steps = {step_of(scene.draft, choice.graph)};
  for (const Kind& kind : scene.more) run.steps.push_back(step_of_kind(kind));
  run.pattern = scene.pattern;
  run.default_steps = scene.steps;
  run.configs = drawn_configs(geometry, choice.graph);
  return run;
}

}  // namespace culprit::forge
